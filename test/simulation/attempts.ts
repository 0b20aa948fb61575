/**
 * What can happen to a request on its way. Each call is tried as the SDK tries it: up to three times
 * with the same request, and only for want of an answer. So a conditional write that is tried again
 * meets its own effect.
 *
 * Before each attempt is sent, and before its answer comes, other events may happen; the attempt is
 * applied at one instant. What the answer shows is the state of that instant.
 */
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import { StoreThrottledError, StoreUnavailableError } from "../../lib/store/errors.ts";
import { NEVER, type Process, type Scheduler } from "./scheduler.ts";

/**
 * - "unsent": it never leaves;
 * - "lost": it is applied, and the answer doesn't come;
 * - "late": it is under way for so long that the client gives up; it arrives whenever it does;
 * - "twice": so does a copy of it, beside the answer;
 * - "throttled": it is refused for the number of requests;
 * - "slow": it, or its answer, takes a second;
 * - "outage": neither this attempt nor the call's later ones get an answer;
 * - "pause": the process stands still, before it sends or before it hears;
 * - "kill": the process dies, before it sends, with the request under way, or before it hears;
 * - "torn": of a batch, others may see a part first.
 */
export type Fault = (typeof FAULTS)[number];

export const FAULTS = [
  "none",
  "unsent",
  "lost",
  "late",
  "twice",
  "throttled",
  "slow",
  "outage",
  "pause",
  "kill",
  "torn",
] as const;

/** One arrival at the table, or one attempt that never arrives. */
export interface Attempt {
  readonly process: string;
  readonly op: keyof Table;
  readonly key: string;
  readonly outcome: string;
}

export interface Network {
  readonly scheduler: Scheduler;
  /** Brings what is under way when nobody waits for it any more. */
  readonly carrier: Process;
  /** By the fault's place in the list, of which the last one happens to batches only. */
  readonly odds: readonly number[];
  readonly batchOdds: readonly number[];
  readonly trace: Attempt[];
}

export interface Call<T> {
  readonly op: keyof Table;
  readonly key: string;
  readonly send: () => Promise<T>;
  readonly tell: (answer: T) => string;
  /** Absent for what changes nothing: then a copy of it doesn't matter. */
  readonly isWrite?: boolean;
  /** Of a batch of at least two. */
  readonly parts?: readonly [() => Promise<T>, () => Promise<T>];
}

/**
 * @throws {StoreThrottledError} where the last attempt was throttled
 * @throws {StoreUnavailableError} where no attempt got an answer; one of them may still arrive
 */
export const attempts = async <T>(
  { op, key, send, tell, isWrite = false, parts }: Call<T>,
  process: Process,
  { scheduler, carrier, odds, batchOdds, trace }: Network,
): Promise<T> => {
  const { choose } = scheduler;
  let isOut = false;

  const record = (outcome: string, by = process): void => {
    trace.push({ process: by.name, op, key, outcome });
  };

  /** It reaches the table. */
  const arrive = async (fault: Fault, { by = process, request = send } = {}): Promise<T> => {
    const told = fault === "none" ? "" : `${fault}: `;
    try {
      const answer = await scheduler.outside(request());
      record(told + tell(answer), by);
      return answer;
    } catch (error) {
      record(told + String(error), by);
      throw error;
    }
  };

  /** It reaches the table some time, whatever has become of who sent it. */
  const arriveLater = (fault: Fault): void => {
    if (!isWrite) return;
    const delayMs = DELAYS_MS[choose(DELAYS_MS.length, "delay")] ?? 0;
    const bring = async (): Promise<void> => {
      await carrier.clock.sleep(delayMs, NEVER);
      // Nobody hears the answer. The trace has it.
      await arrive(fault, { by: carrier }).catch(() => undefined);
    };
    void bring();
  };

  const hear = async (answer: T): Promise<Heard<T>> => {
    await process.point("answer");
    return { answer };
  };

  const attempt = async (fault: Fault): Promise<Heard<T>> => {
    switch (fault) {
      case "none":
        return hear(await arrive(fault));
      case "unsent":
        record(fault);
        return "nothing";
      case "lost":
        await arrive(fault);
        if (choose(2, "lost: a reset, or silence") === 0) await process.point("reset");
        else await process.clock.sleep(TIMEOUT_MS, NEVER);
        return "nothing";
      case "late":
        record(fault);
        arriveLater(fault);
        await process.clock.sleep(TIMEOUT_MS, NEVER);
        return "nothing";
      case "twice": {
        const answer = await arrive(fault);
        arriveLater(fault);
        return hear(answer);
      }
      case "throttled":
        record(fault);
        await process.point("answer");
        return "throttled";
      case "slow": {
        const isSlowThere = choose(2, "slow: there, or back") === 0;
        if (isSlowThere) await process.clock.sleep(SLOW_MS, NEVER);
        const answer = await arrive(fault);
        if (!isSlowThere) await process.clock.sleep(SLOW_MS, NEVER);
        return hear(answer);
      }
      case "outage":
        isOut = true;
        return attempt(OUTAGE[choose(OUTAGE.length, fault)] ?? "unsent");
      case "pause": {
        const pauseMs = PAUSES_MS[choose(PAUSES_MS.length, fault)] ?? 0;
        if (choose(2, "pause: before it is sent, or before its answer") === 0) {
          process.pause(pauseMs);
          await process.point("resumed");
          return hear(await arrive(fault));
        }
        const answer = await arrive(fault);
        process.pause(pauseMs);
        return hear(answer);
      }
      case "kill": {
        record(fault);
        const when = choose(3, "kill: before it is sent, on its way, or before its answer");
        if (when === 1) arriveLater(fault);
        if (when === 2) await arrive(fault);
        process.kill();
        return new Promise(() => {});
      }
      case "torn": {
        if (!parts) return hear(await arrive("none"));
        await arrive(fault, { request: parts[0] });
        await process.point("torn");
        return hear(await arrive(fault, { request: parts[1] }));
      }
    }
  };

  for (let tries = 1; ; tries++) {
    await process.point(op);
    const fault = isOut ? "outage" : FAULTS[choose(parts ? batchOdds : odds, "fault")];
    const heard = await attempt(fault ?? "none");
    if (typeof heard === "object") return heard.answer;
    if (tries < MAX_TRIES) continue;
    throw heard === "throttled"
      ? new StoreThrottledError("every attempt was throttled")
      : new StoreUnavailableError("no attempt was answered");
  }
};

type Heard<T> = { readonly answer: T } | "nothing" | "throttled";

/** Those of the store's client, `dynamoClient`. */
const MAX_TRIES = 3;
const TIMEOUT_MS = 1500;

const SLOW_MS = 1000;

const OUTAGE: readonly Fault[] = ["unsent", "lost", "late"];

/** Among the next events, after a client's timeout, after a lease, after a function's end. */
const DELAYS_MS = [0, 2000, 45_000, 1_000_000];

/** Less than a lease, more than one, and more than a function's time. */
const PAUSES_MS = [5000, 45_000, 1_000_000];
