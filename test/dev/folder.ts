import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder outside the project, removed after the test and whatever it started later. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "oneturn-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}
