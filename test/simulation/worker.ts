import { parentPort } from "node:worker_threads";
import { MUTANTS } from "./mutants.ts";
import type { Done, Job } from "./pool.ts";
import { simulate } from "./simulate.ts";

const work = async ({ mutant: name, from, runs }: Job): Promise<Done> => {
  const mutant = MUTANTS.find((it) => it.name === name);
  const seen: Record<string, number> = {};
  for (let seed = from; seed < from + runs; seed++) {
    const run = await simulate({ seed, ...(mutant ? { mutant } : {}) });
    for (const what of run.seen) seen[what] = (seen[what] ?? 0) + 1;
    if (run.violations.length > 0) {
      return { runs: seed - from + 1, seen, broken: { seed, violations: run.violations } };
    }
  }
  return { runs, seen };
};

const answer = async (job: Job): Promise<void> => parentPort?.postMessage(await work(job));

parentPort?.on("message", (job: Job) => void answer(job));
