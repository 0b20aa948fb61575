import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bundle, buildFunctions } from "../../dev/build.ts";
import { linkPackages, runModule, temporaryFolder } from "./package.ts";

const sources = {
  "signed.ts": `
    import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
    const client = new DynamoDBClient({ region: "eu-west-1" });
    export const handler = () => client.config.credentials();`,
  "throwing.ts": `
    type Unused = { line: 2 };

    export const handler = (): never => { throw new Error("thrown in line 4"); };`,
  "shared.ts": "export const notAFunction = true;",
};

const credentials = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };

describe("a built function", () => {
  let folder: string;
  let bundles: Bundle[];

  beforeAll(async () => {
    folder = await temporaryFolder();
    await Promise.all([linkPackages(folder), mkdir(join(folder, "functions"))]);
    for (const [name, text] of Object.entries(sources)) {
      await writeFile(join(folder, "functions", name), text);
    }
    bundles = await buildFunctions({ root: folder, outdir: join(folder, "dist") });
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const call = (name: string, env: NodeJS.ProcessEnv) => {
    const text = `import { handler } from "./${name}.mjs";
      const report = (error) => ({ message: error.message, stack: error.stack });
      const result = await (async () => handler())().catch(report);
      console.log(JSON.stringify(result));`;
    return runModule(text, { cwd: join(folder, "dist"), env });
  };

  test("is made of each file that exports a handler, and of no other", () => {
    expect(bundles.map(({ name }) => name)).toEqual(["signed", "throwing"]);
  });

  test("takes Lambda's credentials from the environment, the session token with them", async () => {
    const env = { ...credentials, AWS_SESSION_TOKEN: "token" };
    expect(JSON.parse(await call("signed", env))).toMatchObject({
      accessKeyId: "id",
      secretAccessKey: "secret",
      sessionToken: "token",
    });
  });

  test("looks for credentials nowhere else", async () => {
    expect(await call("signed", {})).toContain("Unable to find environment variable credentials");
  });

  test("P04: names the line of the source in a stack trace", async () => {
    const trace = await call("throwing", { NODE_OPTIONS: "--enable-source-maps" });
    expect(trace).toContain("functions/throwing.ts:4:");
  });

  test("P04: has a source map without the sources", async () => {
    const map = await readFile(join(folder, "dist/throwing.mjs.map"), "utf8");
    expect(map).toContain("throwing.ts");
    expect(map).not.toContain("sourcesContent");
  });
});
