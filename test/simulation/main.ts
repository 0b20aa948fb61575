/** `npm run simulate -- [--runs 250000] [--seed 0]`, and `-- --story 123` for one run in words. */
import { parseArgs } from "node:util";
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
    },
  });
  if (values.story !== undefined) {
    console.log(await storyOf({ seed: Number(values.story) }));
    return;
  }
  const runs = Number(values.runs);
  const first = Number(values.seed);
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

function* jobs(first: number, runs: number): Iterable<Job> {
  for (let from = first; from < first + runs; from += JOB_RUNS) {
    yield { from, runs: Math.min(JOB_RUNS, first + runs - from) };
  }
}

const rate = (done: number, sinceMs: number): number =>
  Math.round(done / ((performance.now() - sinceMs) / 1000));

await main();
