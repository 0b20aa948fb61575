import { setTimeout as sleepFor } from "node:timers/promises";
import type { ModelCallOptions } from "../agent/model.ts";
import { ProviderError } from "./errors.ts";

export interface RetryOptions {
  /** In all, the first one too. 4 by default. */
  readonly maxTries?: number;
  /** Resolves after so long, or rejects with the signal's reason. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** In [0, 1). */
  readonly random?: () => number;
}

/** A longer wait is paid for by the millisecond: the caller had better come again. */
const MAX_WAIT_MS = 20_000;

const FIRST_WAIT_MS = 500;

/**
 * Tries again what failed for a while: throttling, overload, a broken connection. It waits as long
 * as the provider asks, else twice as long each time with a random part, and never past `signal`.
 *
 * @throws {ProviderError} the last one; the signal's reason where it aborts
 */
export const retrying = async <T>(
  call: (tries: number) => Promise<T>,
  signal: AbortSignal,
  { maxTries = 4, sleep = pause, random = Math.random }: RetryOptions = {},
): Promise<T> => {
  for (let tries = 1; ; tries++) {
    try {
      return await call(tries);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ProviderError && error.isTransient) || tries >= maxTries) throw error;
      const ownMs = FIRST_WAIT_MS * 2 ** (tries - 1) * (0.5 + random() / 2);
      const waitMs = Math.max(error.retryAfterMs ?? 0, ownMs);
      if (waitMs > MAX_WAIT_MS) throw error;
      await sleep(waitMs, signal);
    }
  }
};

/**
 * As `retrying`, for a call that tells text as it comes: a try that follows one which told some says
 * first that it is void. `tell` is undefined where nobody listens.
 */
export const retryingAloud = <T>(
  call: (tell: ModelCallOptions["onText"]) => Promise<T>,
  { signal, onText, onRestart }: ModelCallOptions,
  options: RetryOptions,
): Promise<T> => {
  let isTold = false;
  const tell =
    onText &&
    ((delta: string): void => {
      isTold = true;
      onText(delta);
    });
  return retrying(
    () => {
      if (isTold) onRestart?.();
      isTold = false;
      return call(tell);
    },
    signal,
    options,
  );
};

const pause = async (ms: number, signal: AbortSignal): Promise<void> => {
  try {
    await sleepFor(ms, undefined, { signal });
  } catch {
    throw signal.reason;
  }
};
