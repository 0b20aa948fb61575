/**
 * Runs processes one event at a time, in virtual time. Which event comes next, and whatever else may
 * go one way or another, is drawn through `choose`: the list of its answers is the whole run, and
 * gives the same run again. 0 is always the plain answer: the oldest event, no fault.
 *
 * What runs here waits for nothing but its process's points and clock, `outside`, and promises of
 * its own kind. It has no timers, ticks or I/O that the scheduler doesn't know.
 */
import type { Clock } from "../../lib/turns/clock.ts";

export interface Scheduler {
  /** One of `odds` answers, all as likely; or, of a list, each as likely as its weight. */
  choose(odds: number | readonly number[], label: string): number;
  /** Every answer so far, where there was more than one to give. */
  readonly choices: readonly number[];
  process(name: string, options?: { readonly clockSkewMs?: number }): Process;
  /** Work that ends by itself, in real time if it has to: nothing is chosen before. */
  outside<T>(work: Promise<T>): Promise<T>;
  /**
   * Ends when nothing is left to happen. May be called again, for what was begun since.
   *
   * @throws {StuckError}
   */
  run(): Promise<void>;
  /** Virtual time, without anyone's skew. */
  readonly nowMs: () => number;
}

export interface Process {
  readonly name: string;
  readonly clock: Clock & { readonly monotonicMs: () => number };
  readonly alive: boolean;
  /** From now on nothing that it waits for comes. */
  kill(): void;
  /** Nothing that it waits for comes before this time has passed for all others. */
  pause(ms: number): void;
  /** Resolves when the scheduler picks it. */
  point(label: string): Promise<void>;
}

export interface SchedulerOptions {
  /** For what `choices` doesn't answer; without a seed, that is 0. */
  readonly seed?: number;
  /** Given again, in this order. One that has no meaning any more counts as 0. */
  readonly choices?: readonly number[];
  readonly startMs?: number;
  /** Events in one `run`. */
  readonly maxSteps?: number;
  /** While events are pending, time moves on to the next timer once in so many steps. */
  readonly stepsPerJump?: number;
  readonly onChoice?: (label: string, answer: number) => void;
}

/** So many events, and still no end: a livelock. */
export class StuckError extends Error {
  override readonly name = "StuckError";
}

export const createScheduler = ({
  seed,
  choices: recorded = [],
  startMs = Date.UTC(2026, 11, 1),
  maxSteps = 10_000,
  stepsPerJump = 24,
  onChoice,
}: SchedulerOptions): Scheduler => {
  const random = seed === undefined ? () => 0 : mulberry32(seed);
  const choices: number[] = [];
  const jumpOdds = [stepsPerJump - 1, 1];
  /** In the order in which they were made. */
  const events: Event[] = [];
  let nowMs = startMs;
  let outsiders = 0;
  let whenInside = (): void => {};

  const choose: Scheduler["choose"] = (odds, label) => {
    const count = typeof odds === "number" ? odds : odds.length;
    if (count < 2) return 0;
    const at = choices.length;
    let answer = at < recorded.length ? (recorded[at] ?? 0) : draw(odds, random());
    if (answer >= count) answer = 0;
    choices.push(answer);
    onChoice?.(label, answer);
    return answer;
  };

  const outside = async <T>(work: Promise<T>): Promise<T> => {
    outsiders++;
    try {
      return await work;
    } finally {
      if (--outsiders === 0) whenInside();
    }
  };

  const inside = async (): Promise<void> => {
    while (outsiders > 0) {
      await new Promise<void>((resolve) => {
        whenInside = resolve;
      });
      await nextTick();
    }
  };

  const process: Scheduler["process"] = (name, { clockSkewMs = 0 } = {}) => {
    const state = { isAlive: true, pausedUntilMs: 0 };

    const wait = (label: string, atMs: number, end: () => void): Event => {
      const event = { name, state, label, atMs, end };
      if (state.isAlive) events.push(event);
      return event;
    };

    const sleep: Clock["sleep"] = (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted && state.isAlive) return resolve();
        const end = (): void => {
          signal.removeEventListener("abort", abort);
          resolve();
        };
        const abort = (): void => {
          const at = events.indexOf(event);
          if (at < 0) return;
          events.splice(at, 1);
          end();
        };
        const event = wait("sleep", nowMs + ms, end);
        if (signal !== NEVER) signal.addEventListener("abort", abort, { once: true });
      });

    return {
      name,
      clock: {
        nowMs: () => nowMs + clockSkewMs,
        monotonicMs: () => nowMs - startMs,
        sleep,
      },
      get alive() {
        return state.isAlive;
      },
      kill: () => {
        state.isAlive = false;
        for (let at = events.length - 1; at >= 0; at--) {
          if (events[at]?.state === state) events.splice(at, 1);
        }
      },
      pause: (ms) => {
        state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + ms);
      },
      point: (label) =>
        new Promise((resolve) => {
          wait(label, nowMs, resolve);
        }),
    };
  };

  /** The event to come, taken from those that are pending; time moves to it. */
  const next = (): Event | undefined => {
    let due = 0;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const event of events) {
      const atMs = dueMs(event);
      if (atMs <= nowMs) due++;
      else if (atMs < nextMs) nextMs = atMs;
    }
    const isTimeLeft = nextMs < Number.POSITIVE_INFINITY;
    if (due === 0 && !isTimeLeft) return undefined;
    const jumps = isTimeLeft && (due === 0 || choose(jumpOdds, "time passes") === 1);
    if (jumps) {
      nowMs = nextMs;
      due = events.filter((event) => dueMs(event) === nextMs).length;
    }
    let skip = choose(due, "event");
    for (const [at, event] of events.entries()) {
      const atMs = dueMs(event);
      const isDue = jumps ? atMs === nextMs : atMs <= nowMs;
      if (isDue && skip-- === 0) return events.splice(at, 1)[0];
    }
    return undefined;
  };

  const run = async (): Promise<void> => {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    for (let steps = 0; ; steps++) {
      await nextTick();
      if (outsiders > 0) await inside();
      const event = next();
      if (!event) return;
      if (steps === maxSteps) {
        const pending = [event, ...events].map(({ name, label }) => `${name}: ${label}`);
        throw new StuckError(`no end after ${maxSteps} events; pending: ${pending.join(", ")}`);
      }
      event.end();
    }
  };

  return { choose, choices, process, outside, run, nowMs: () => nowMs };
};

/** For a sleep that nobody ends early. */
export const NEVER: AbortSignal = new AbortController().signal;

/** Evenly distributed numbers in [0, 1), the same for the same seed. */
export const mulberry32 = (seed: number): (() => number) => {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

interface Event {
  readonly name: string;
  readonly state: { isAlive: boolean; pausedUntilMs: number };
  readonly label: string;
  readonly atMs: number;
  readonly end: () => void;
}

const dueMs = ({ atMs, state }: Event): number => Math.max(atMs, state.pausedUntilMs);

const draw = (odds: number | readonly number[], random: number): number => {
  if (typeof odds === "number") return Math.floor(random * odds);
  let left = random * odds.reduce((sum, weight) => sum + weight, 0);
  for (const [answer, weight] of odds.entries()) {
    left -= weight;
    if (left < 0) return answer;
  }
  return 0;
};

/** Node runs a tick when every microtask is done, those of microtasks too; `setImmediate` takes five times as long. */
const nextTick = (): Promise<void> =>
  new Promise((resolve) => {
    process.nextTick(resolve);
  });
