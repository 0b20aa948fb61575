import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";

/** What serverless.yml gives a function, less what Node takes beside its heap. */
const HEAP_MEGABYTES = 400;

test("a session of 20 MB is built, restored, listed, paged, exported, forked, expired and cleaned within 512 MB", {
  timeout: 300_000,
}, async () => {
  const engine = dynamoEngines().at(-1);
  if (!engine) throw new Error("there is no engine");
  const { tableName } = await freshTable(engine.endpoint);
  const script = join(import.meta.dirname, "large-session.ts");
  const child = spawn(
    process.execPath,
    [`--max-old-space-size=${HEAP_MEGABYTES}`, script, engine.endpoint, tableName],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const report: unknown = JSON.parse(await text(child.stdout));
  expect(report).toMatchObject({
    versions: [5002, 5003, 5003, 5004],
    shown: 10_005,
    paged: 2 * 10_004,
    listed: [
      ["forked", 5002],
      ["large", 5002],
    ].slice(1),
    exported: true,
    pages: true,
    gone: "SessionNotFoundError",
    swept: { sessions: 2, kept: 0, failed: 0 },
  });
  const { bytes, rssMegabytes } = report as { bytes: number; rssMegabytes: number };
  expect(bytes).toBeGreaterThan(20_000_000);
  expect(rssMegabytes).toBeLessThan(512);
});
