import type { Clock } from "../../lib/turns/clock.ts";

/** A clock that stands until a test moves it. */
export interface SettableClock extends Clock {
  /** Moves the time and wakes whoever has slept long enough; `wake: false` leaves them asleep, as a frozen process does. */
  advance(ms: number, options?: { wake: boolean }): void;
  wake(): void;
  /** How many sleep now. */
  sleepers(): number;
}

export const settableClock = (startMs: number): SettableClock => {
  let nowMs = startMs;
  const sleeping = new Set<{ readonly untilMs: number; readonly end: () => void }>();
  const wake = () => {
    for (const sleeper of [...sleeping]) {
      if (sleeper.untilMs <= nowMs) sleeper.end();
    }
  };
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const sleeper = {
          untilMs: nowMs + ms,
          end: () => {
            sleeping.delete(sleeper);
            resolve();
          },
        };
        sleeping.add(sleeper);
        signal.addEventListener("abort", sleeper.end, { once: true });
      }),
    advance: (ms, { wake: wakes } = { wake: true }) => {
      nowMs += ms;
      if (wakes) wake();
    },
    wake,
    sleepers: () => sleeping.size,
  };
};
