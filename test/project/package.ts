/** Packages the service as a deployment would, in a folder of its own, and reads what came out. */
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { buildFunctions } from "../../dev/build.ts";
import { readZip } from "./zip.ts";

const run = promisify(execFile);
export const ROOT = join(import.meta.dirname, "../..");

const template = z.object({
  Resources: z.record(
    z.string(),
    z.looseObject({ Type: z.string(), Properties: z.record(z.string(), z.unknown()).default({}) }),
  ),
  Outputs: z.record(z.string(), z.unknown()),
});

export type Template = z.infer<typeof template>;
export type Resource = Template["Resources"][string];

export const temporaryFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "oneturn-"));

/** Runs with no AWS setting in the environment, and where no configuration file is. */
export async function packageStage(stage: string, folder: string) {
  await buildFunctions({ root: ROOT, outdir: join(folder, "dist") });
  // package.json is there to be left out of the archives.
  for (const name of ["serverless.yml", "package.json"]) {
    await copyFile(join(ROOT, name), join(folder, name));
  }
  const osls = join(ROOT, "node_modules/serverless/bin/serverless.js");
  const args = [osls, "package", "--stage", stage, "--region", "eu-west-1"];
  await run(process.execPath, args, { cwd: folder, env: { HOME: folder } });
  const out = join(folder, ".serverless");
  const compiled = await readFile(join(out, "cloudformation-template-update-stack.json"), "utf8");
  return {
    template: template.parse(JSON.parse(compiled)),
    zip: async (name: string) => readZip(await readFile(join(out, `${name}.zip`))),
  };
}

/** Runs a module's text as plain Node would, with this environment and no other, and gives back what it prints. */
export async function runModule(text: string, options: { cwd: string; env: NodeJS.ProcessEnv }) {
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", text], options);
  return stdout;
}

/** Lets a folder's own sources find the project's packages. */
export const linkPackages = (folder: string): Promise<void> =>
  symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
