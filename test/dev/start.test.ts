import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Child, startChild } from "./child.ts";
import { temporaryFolder } from "./folder.ts";
import { type Reply, send } from "./send.ts";

const START = join(import.meta.dirname, "..", "..", "dev", "start.ts");

type Env = Record<string, string>;
type Running = { child: Child; url: string };

/** As `npm start` runs it, from a folder that is not the project's. */
function startIn(cwd: string, env: Env = {}): Child {
  return startChild([START], { cwd, env: { PORT: "0", ...env } });
}

async function running(cwd: string, env: Env = {}): Promise<Running> {
  const child = startIn(cwd, env);
  return { child, url: await child.printed(/oneturn is at (http:\S+)\. /) };
}

async function stop({ child }: Running): Promise<void> {
  child.kill("SIGTERM");
  expect(await child.ended, child.stderr()).toBe(0);
}

function turn(url: string, input: string, headers: string[] = []): Promise<Reply> {
  return send(url, "/v1/sessions/demo/turns", {
    method: "POST",
    headers: ["Content-Type", "application/json", ...headers],
    body: JSON.stringify({ input }),
  });
}

/** What is printed where it doesn't start: one line, and exit code 1. */
async function refusal(cwd: string, env: Env): Promise<string> {
  const child = startIn(cwd, env);
  expect(await child.ended, child.stderr()).toBe(1);
  expect(child.stdout()).toBe("");
  expect(child.stderr()).toMatch(/^[^\n]+\n$/);
  return child.stderr().trimEnd();
}

describe("npm start", () => {
  test("prints where it is, where the data is, and a command that works as it stands", async () => {
    const folder = await temporaryFolder();
    const { child, url } = await running(folder);
    await child.printed(/The data is in .*\n/);
    expect(child.stdout()).toContain(`The data is in ${join(folder, ".oneturn")}.\n`);

    const command = /^ {2}curl -s (\S+) -H '([^:]+): ([^']+)' -d '([^']+)'$/m.exec(child.stdout());
    const [, target = "", name = "", value = "", body = ""] = command ?? [];
    expect(target).toBe(`${url}/v1/sessions/demo/turns`);
    const reply = await send(url, new URL(target).pathname, {
      method: "POST",
      headers: [name, value],
      body,
    });
    expect(reply.status).toBe(200);
    expect(JSON.parse(reply.text)).toMatchObject({
      session_id: "demo",
      final: expect.stringContaining("20"),
    });

    await child.printed(/^POST \/v1\/sessions\/demo\/turns 200 \d+ ms local$/m);
    await stop({ child, url });
    expect(child.stderr()).toBe("");
  });

  test("runs the functions on its own table, whatever the shell says about AWS", async () => {
    const { url } = await running(await temporaryFolder(), {
      TABLE_NAME: "production",
      DYNAMODB_ENDPOINT: "http://127.0.0.1:1",
      AWS_REGION: "eu-central-1",
    });
    expect((await turn(url, "Add 2 and 3")).status).toBe(200);
  });

  test("keeps the sessions of one owner from another (X01)", async () => {
    const { url } = await running(await temporaryFolder());
    await turn(url, "Add 2 and 3", ["x-dev-owner", "ann"]);
    const asOwner = (owner: string) =>
      send(url, "/v1/sessions/demo", { headers: ["x-dev-owner", owner] });
    expect((await asOwner("ann")).status).toBe(200);
    expect((await asOwner("bob")).status).toBe(404);
  });
});

describe("the sessions", () => {
  test.each(["SIGTERM", "SIGKILL"] as const)("are there again after a %s", async (signal) => {
    const folder = await temporaryFolder();
    const env = { DATA_DIR: "data" };
    const first = await running(folder, env);
    const key = ["Idempotency-Key", "turn-1"];
    const answer: unknown = JSON.parse((await turn(first.url, "Add 2 and 3", key)).text);
    expect(answer).toMatchObject({ replayed: false });
    first.child.kill(signal);
    await first.child.ended;

    const second = await running(folder, env);
    const again: unknown = JSON.parse((await turn(second.url, "Add 2 and 3", key)).text);
    expect(again).toEqual({ ...Object(answer), replayed: true });
  });
});

describe("AGENT", () => {
  /** An agent of the user's own, whose `add` is off by a thousand. */
  const MODULE = `
    import { Agent, tool } from "oneturn";
    import { demoModel } from "oneturn/models/demo";

    const add = tool({
      name: "add",
      description: "a plus b",
      parameters: { type: "object" },
      effect: "none",
      run: ({ a, b }) => a + b + 1000,
    });
    export const agent = new Agent({ model: demoModel(), tools: [add] });
  `;

  test.each(["agent.ts", "agent.mjs", "agent.js"])(
    "runs a module from anywhere that imports oneturn by its name: %s",
    async (file) => {
      const folder = await temporaryFolder();
      await writeFile(join(folder, file), MODULE);
      const { child, url } = await running(folder, { AGENT: file });
      const reply = await turn(url, "Add 2 and 3");
      expect(JSON.parse(reply.text)).toMatchObject({ final: expect.stringContaining("1005") });
      expect(child.stderr()).toBe("");
    },
  );

  test("is refused where there is no such file", async () => {
    const folder = await temporaryFolder();
    await mkdir(join(folder, "folder"));
    for (const name of ["nope.ts", "folder"]) {
      expect(await refusal(folder, { AGENT: name })).toBe(
        `AGENT is ${join(folder, name)}, but there is no such file.`,
      );
    }
  });

  test.each([
    ["throws", 'throw new Error("no key\\nand more");', /can't be imported: Error: no key$/],
    ["throws no error", "throw null;", /can't be imported: null$/],
    ["is no TypeScript", "export const agent = ;", /can't be imported: SyntaxError: /],
    [
      "imports what isn't there",
      'import "nope";',
      /can't be imported: .*Cannot find package 'nope'/,
    ],
    ["asks for what isn't exported", 'import { X } from "oneturn";', /export named 'X'/],
    ["reaches past the exports", 'import "oneturn/lib/index.ts";', /not defined by "exports"/],
    ["exports no agent", "export default 1;", /doesn't export `agent`/],
    ["exports another thing as agent", "export const agent = { model: 1 };", /is not an Agent/],
    ["exports null as agent", "export const agent = null;", /is not an Agent/],
  ])("is refused with one line where the module %s", async (_, source, expected) => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "agent.ts"), source);
    const line = await refusal(folder, { AGENT: "agent.ts" });
    expect(line).toMatch(expected);
    expect(line).toContain(`AGENT is ${join(folder, "agent.ts")}`);
  });
});

describe("a start that can't be is refused with one line:", () => {
  test.each(["http", "-1", "65536", "3000.5", "0x50", " 80"])("PORT=%s", async (port) => {
    const line = await refusal(await temporaryFolder(), { PORT: port });
    expect(line).toBe(`PORT is ${JSON.stringify(port)}: set it to a port number, 0 to 65535.`);
  });

  test("a port in use", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => {
      server.close();
    });
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? String(address.port) : "";
    const line = await refusal(await temporaryFolder(), { PORT: port });
    expect(line).toBe(`Port ${port} is in use: set PORT to another one.`);
  });

  test("a data folder that another gateway has", async () => {
    const folder = await temporaryFolder();
    const other = await running(folder);
    const line = await refusal(folder, {});
    expect(line).toContain(`${join(folder, ".oneturn")} is in use by another gateway`);
    // The one that was there goes on.
    expect((await turn(other.url, "Add 2 and 3")).status).toBe(200);
  });

  test("a data folder that is a file", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "data"), "");
    const line = await refusal(folder, { DATA_DIR: "data" });
    expect(line).toContain(`The data folder ${join(folder, "data")} can't be used`);
  });

  test("a data folder that may not be written", async () => {
    const folder = await temporaryFolder();
    await chmod(folder, 0o555);
    // Root may write everywhere, so it becomes somebody else.
    const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const child = startChild([START], { cwd: folder, env: { PORT: "0" }, ...asNobody });
    expect(await child.ended, child.stderr()).toBe(1);
    expect(child.stderr()).toMatch(
      /^The data folder \S+ can't be used \(.*permission denied.*\n$/i,
    );
  });

  test("a setting of the functions", async () => {
    const line = await refusal(await temporaryFolder(), { MAX_STEPS: "many" });
    expect(line).toContain("MAX_STEPS");
  });
});

describe("stopping", () => {
  /** Its tool tells when it runs, and waits until it is told to go on. */
  const WAITING = `
    import { existsSync, writeFileSync } from "node:fs";
    import { setTimeout } from "node:timers/promises";
    import { Agent, tool } from "oneturn";
    import { demoModel } from "oneturn/models/demo";

    const add = tool({
      name: "add",
      description: "a plus b",
      parameters: { type: "object" },
      effect: "none",
      async run({ a, b }) {
        console.log("the tool runs");
        while (!existsSync("go-on")) await setTimeout(10);
        return a + b;
      },
    });
    export const agent = new Agent({ model: demoModel(), tools: [add] });
  `;

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s, even twice, finishes the running turn and then ends with 0",
    async (signal) => {
      const folder = await temporaryFolder();
      await writeFile(join(folder, "agent.ts"), WAITING);
      const { child, url } = await running(folder, { AGENT: "agent.ts" });
      const reply = turn(url, "Add 2 and 3");
      await child.printed(/the tool runs/);
      child.kill(signal);
      await expect
        .poll(() =>
          send(url, "/ping").then(
            () => "open",
            () => "closed",
          ),
        )
        .toBe("closed");
      child.kill(signal);
      await writeFile(join(folder, "go-on"), "");
      expect(JSON.parse((await reply).text)).toMatchObject({ final: expect.stringContaining("5") });
      expect(await child.ended).toBe(0);
      expect(child.stderr()).toBe("");
    },
  );
});
