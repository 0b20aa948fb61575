/**
 * `npm run simulate -- [--runs 250000] [--seed 0]`; `-- --story 123` for one run in words; and
 * `-- --engines 1000` for so many runs on the simulated table, through the SDK, and on DynamoDB Local.
 */
import { parseArgs } from "node:util";
import { compare } from "./compare.ts";
import { type Job, runJobs } from "./pool.ts";
import { REQUIRED } from "./required.ts";
import { smallestStory, storyOf } from "./tell.ts";

const JOB_RUNS = 250;
const TELL_MS = 5000;

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "20000" },
      seed: { type: "string", default: "0" },
      story: { type: "string" },
      engines: { type: "string" },
    },
  });
  if (values.story !== undefined) {
    console.log(await storyOf({ seed: Number(values.story) }));
    return;
  }
  const first = Number(values.seed);
  if (values.engines !== undefined) {
    await compareEngines(first, Number(values.engines));
    return;
  }
  const runs = Number(values.runs);
  const beganMs = performance.now();
  const seen = new Map<string, number>();
  let done = 0;
  let broken: { readonly seed: number; readonly violations: readonly string[] } | undefined;
  let toldMs = beganMs;

  await runJobs(jobs(first, runs), (_job, it) => {
    done += it.runs;
    for (const [what, count] of Object.entries(it.seen))
      seen.set(what, (seen.get(what) ?? 0) + count);
    broken = it.broken;
    if (performance.now() - toldMs > TELL_MS) {
      toldMs = performance.now();
      console.error(`${done} of ${runs} runs, ${rate(done, beganMs)} a second`);
    }
    return broken ? "stop" : "go on";
  });

  if (broken) {
    console.log(`Seed ${broken.seed} breaks the protocol:\n${broken.violations.join("\n")}\n`);
    console.log(await smallestStory({ seed: broken.seed }));
    process.exitCode = 1;
    return;
  }
  for (const [what, count] of [...seen].toSorted(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${String(count).padStart(8)}  ${what}`);
  const missing = REQUIRED.filter((what) => !seen.has(what));
  if (missing.length > 0) {
    console.log(`Never seen: ${missing.join(", ")}`);
    process.exitCode = 1;
  }
  console.log(`${done} runs clean, ${rate(done, beganMs)} a second`);
};

const compareEngines = async (first: number, runs: number): Promise<void> => {
  const differing = await compare(Array.from({ length: runs }, (_, n) => first + n));
  for (const it of differing) console.log(`Not the same run: ${it}`);
  console.log(`${runs} runs on three engines, ${differing.length} not the same`);
  if (differing.length > 0) process.exitCode = 1;
};

function* jobs(first: number, runs: number): Iterable<Job> {
  for (let from = first; from < first + runs; from += JOB_RUNS) {
    yield { from, runs: Math.min(JOB_RUNS, first + runs - from) };
  }
}

const rate = (done: number, sinceMs: number): number =>
  Math.round(done / ((performance.now() - sinceMs) / 1000));

await main();
