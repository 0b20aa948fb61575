/** Time as an argument, so that everything here runs under a simulated clock too. */
export interface Clock {
  readonly nowMs: () => number;
  /** Never set back or forward: what the length of a lease is measured with. Its zero is anywhere. */
  readonly monotonicMs: () => number;
  /** Resolves after `ms`, or as soon as the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

export const systemClock: Clock = {
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end, { once: true });
    }),
};

export type RandomBytes = (length: number) => Uint8Array;

export const cryptoRandom: RandomBytes = (length) => crypto.getRandomValues(new Uint8Array(length));

/** At least 0, and less than 1. */
export const randomFraction = (randomBytes: RandomBytes): number =>
  Buffer.from(randomBytes(4)).readUInt32BE() / 2 ** 32;

/** 128 random bits in hex: what names an attempt, an incarnation, a turn of our own. */
export const randomId = (randomBytes: RandomBytes): string =>
  Buffer.from(randomBytes(16)).toString("hex");
