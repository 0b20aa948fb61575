/** Runs of many seeds, on all cores. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

export interface Job {
  readonly mutant?: string;
  readonly from: number;
  readonly runs: number;
}

export interface Done {
  readonly runs: number;
  /** How many runs came through it. */
  readonly seen: Readonly<Record<string, number>>;
  /** The first run of the job that broke an invariant; the job ends with it. */
  readonly broken?: { readonly seed: number; readonly violations: readonly string[] };
}

/** Calls `onDone` for each job, in the order in which they end; it may say that the rest isn't wanted. */
export const runJobs = async (
  jobs: Iterable<Job>,
  onDone: (job: Job, done: Done) => "go on" | "stop",
): Promise<void> => {
  const left = jobs[Symbol.iterator]();
  let isStopped = false;
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    try {
      for (let next = left.next(); !next.done && !isStopped; next = left.next()) {
        const job = next.value;
        const done = await ask(worker, job);
        if (!isStopped && onDone(job, done) === "stop") isStopped = true;
      }
    } finally {
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
};

const ask = (worker: Worker, job: Job): Promise<Done> =>
  new Promise((resolve, reject) => {
    worker.removeAllListeners();
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.postMessage(job);
  });
