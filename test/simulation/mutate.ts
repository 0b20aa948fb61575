/**
 * `npm run mutants -- [--runs 250000] [--redundant-runs 2000] [--only "commit:"]`: shows that the
 * simulation finds each mutant. Those that are thought to be redundant come behind the others.
 */
import { parseArgs } from "node:util";
import { MUTANTS } from "./mutants.ts";
import { type Job, runJobs } from "./pool.ts";
import type { Mutant } from "./simulate.ts";

/** A mutant is tried on so many seeds before the next one has its turn. */
const JOB_RUNS = 500;

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "20000" },
      "redundant-runs": { type: "string", default: "2000" },
      only: { type: "string", default: "" },
    },
  });
  const chosen = MUTANTS.filter(({ name }) => name.includes(values.only));
  const alive = new Map(chosen.map((mutant) => [mutant.name, mutant]));

  function* jobs(mutants: readonly Mutant[], runs: number): Iterable<Job> {
    for (let from = 0; from < runs; from += JOB_RUNS) {
      for (const { name } of mutants) {
        if (alive.has(name)) yield { mutant: name, from, runs: Math.min(JOB_RUNS, runs - from) };
      }
    }
  }
  function* allJobs(): Iterable<Job> {
    const isRedundant = ({ redundant }: Mutant): boolean => redundant !== undefined;
    yield* jobs(
      chosen.filter((it) => !isRedundant(it)),
      Number(values.runs),
    );
    yield* jobs(chosen.filter(isRedundant), Number(values["redundant-runs"]));
  }

  await runJobs(allJobs(), ({ mutant: name = "" }, { broken }) => {
    const mutant = alive.get(name);
    if (broken && mutant) {
      alive.delete(name);
      const why = broken.violations[0]?.split("\n")[0]?.slice(0, 120);
      const note = mutant.redundant ? " (thought to be redundant)" : "";
      console.log(`killed by seed ${String(broken.seed).padStart(6)}  ${name}${note}: ${why}`);
    }
    return "go on";
  });

  for (const { name, redundant } of alive.values()) {
    console.log(
      redundant
        ? `redundant               ${name}: ${redundant}`
        : `SURVIVED               ${name}`,
    );
  }
  const survivors = [...alive.values()].filter(({ redundant }) => !redundant);
  console.log(
    `${chosen.length - alive.size} killed, ${alive.size - survivors.length} redundant, ${survivors.length} survived`,
  );
  if (survivors.length > 0) process.exitCode = 1;
};

await main();
