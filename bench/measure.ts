import { type Costs, readsOf, roundTripsOf, type Trace, writesOf } from "./trace.ts";

export interface Row {
  readonly system: string;
  /** "warm" is a process that ran the turns before; a cold one has yet to see the session. */
  readonly process: "cold" | "warm";
  readonly turn: number;
  /** Writes averaged over the 20 turns up to this one, and this turn's reads. */
  readonly requests: number;
  readonly roundTrips: number;
  /** Averaged over the 20 turns up to this one. */
  readonly writeUnits: number;
  readonly readUnits: number;
  readonly bytes: number;
  readonly cpuMs: number;
}

/** Where a system can't get: its requests and units don't exist. */
export type Missing = Pick<Row, "system" | "process" | "turn"> & {
  readonly [field in Exclude<keyof Row, "system" | "process" | "turn">]: null;
};

/** Not each turn writes the same. */
export const AVERAGED_TURNS = 20;

/** @param before what the turns before this one wrote, the last ones */
export const rowOf = (
  label: Pick<Row, "system" | "process" | "turn">,
  {
    trace,
    before,
    cpuMs,
  }: { readonly trace: Trace; readonly before: readonly Costs[]; readonly cpuMs: number },
): Row => {
  const writes = [...before, writesOf(trace)].slice(-AVERAGED_TURNS);
  const reads = readsOf(trace);
  return {
    ...label,
    requests: rounded(mean(writes.map(({ requests }) => requests)) + reads.requests),
    roundTrips: roundTripsOf(trace),
    writeUnits: rounded(mean(writes.map(({ units }) => units))),
    readUnits: reads.units,
    bytes: trace.bytes,
    cpuMs: rounded(cpuMs),
  };
};

/**
 * The median of the processor time that `work` takes, all threads together, compiler and garbage
 * collector too. Enough runs go before those that count for the code to be compiled.
 *
 * @param prepare gives the work of one run; what it does itself isn't counted
 */
export const cpuMsOf = async (
  prepare: () => () => Promise<unknown>,
  runs: number,
): Promise<number> => {
  const tookMs: number[] = [];
  for (let run = 0; run < WARM_UP_RUNS + runs; run++) {
    const work = prepare();
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    tookMs.push((user + system) / 1000);
  }
  const counted = tookMs.slice(WARM_UP_RUNS).toSorted((a, b) => a - b);
  return counted[Math.floor(runs / 2)] ?? 0;
};

/** After a few dozen the compiler still takes as long as the work itself. */
const WARM_UP_RUNS = 100;

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

const rounded = (value: number): number => Math.round(value * 100) / 100;
