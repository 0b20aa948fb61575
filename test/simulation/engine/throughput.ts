/** Prints what a scheduling point takes, and how many schedules the engine runs in a second of a core. */
import { CALM, STORMY } from "../faults.ts";
import { createScheduler, type Process } from "../scheduler.ts";
import { simulatedTable } from "../table.ts";
import { runWorkload } from "./workload.ts";

const RUNS = 5000;
const POINTS = 100_000;

/** Of processor time: others on the machine don't matter. */
const msOf = async (work: () => Promise<unknown>): Promise<number> => {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
};

const pass = async ({ point }: Process): Promise<void> => {
  for (let n = 0; n < POINTS / 4; n++) await point("pass");
};

const pointsMs = await msOf(async () => {
  const scheduler = createScheduler({ seed: 1, maxSteps: POINTS + 1 });
  for (const name of ["a", "b", "c", "d"]) void pass(scheduler.process(name));
  await scheduler.run();
});
console.log(`a point: ${((pointsMs / POINTS) * 1000).toFixed(2)} µs, four processes at once`);

for (const [profile, faults] of Object.entries({ CALM, STORMY })) {
  let attempts = 0;
  const tookMs = await msOf(async () => {
    for (let seed = 0; seed < RUNS; seed++) {
      const table = simulatedTable().asTable();
      attempts += (await runWorkload({ table, faults, name: "s", seed })).trace.length;
    }
  });
  const rate = Math.round((RUNS / tookMs) * 1000);
  const cost = ((tookMs / attempts) * 1000).toFixed(1);
  console.log(`${profile}: ${rate} schedules/s of ${attempts / RUNS} attempts, ${cost} µs each`);
}
