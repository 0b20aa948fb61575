/**
 * The claim of a session, as its runner holds it.
 *
 * A claim lasts for one short lease, so that a dead runner doesn't block its session for long; a
 * runner that is alive extends it. Only waiting rests on this: what may be written is decided by
 * attempt, fence, version and revision, whatever the clocks say.
 */
import type { Head } from "../store/head.ts";
import type { Held, Kept, SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { TurnSupersededError } from "./errors.ts";

/** Covers the difference of two machines' clocks. */
const MARGIN_MS = 2000;

/** Spares the making of an error, which nobody looks at. */
export const ENDED = "ended";

export interface LeaseOptions {
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly deadlineMs: number;
}

export const leaseUntilMs = (options: LeaseOptions): number =>
  options.clock.nowMs() + lengthMs(options) + MARGIN_MS;

/** Of a lease that begins now. */
const lengthMs = ({ clock, leaseMs, deadlineMs }: LeaseOptions): number =>
  Math.min(leaseMs, deadlineMs - clock.nowMs());

export interface HoldOptions extends LeaseOptions {
  readonly store: SessionStore;
  /** The session as it was granted. */
  readonly head: Head;
  /** On the monotonic clock, from before the claim was sent. */
  readonly sinceMs: number;
  /** The claim isn't the runner's any more. */
  readonly onLost: (error: TurnSupersededError) => void;
}

export interface Hold {
  readonly held: Held;
  /** Whether a step of the turn may be in the store, so that another try can go on from there. */
  readonly isKept: () => boolean;
  /** @throws {TurnSupersededError} where the claim is lost; {StoreUnavailableError} where nobody knows */
  keep(kept: Kept): Promise<void>;
  /** @throws {TurnSupersededError} where the lease may have ended, and another runner may be at work */
  check(): void;
  /** Lets the lease run out. Resolves when no write of this runner's is on its way. */
  end(): Promise<void>;
}

/** One write at a time carries the lease, and only what was answered is believed. */
export const holdClaim = (held: Held, options: HoldOptions): Hold => {
  const { store, clock, leaseMs, head } = options;
  const ended = new AbortController();
  let revision = head.open?.revision ?? 0;
  let isKept = revision > 0;
  let untilMs = head.claim?.untilMs ?? 0;
  let safeUntilMs = options.sinceMs + lengthMs(options);
  let last: Promise<unknown> = Promise.resolve();
  /** Of a checkpoint: what is in the store isn't known from then on. */
  let failure: { readonly error: unknown } | undefined;

  /** Not before what was asked for already, though the clock may be set back. */
  const nextUntilMs = (): number => {
    untilMs = Math.max(untilMs, leaseUntilMs(options));
    return untilMs;
  };

  const afterLast = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };

  const lost = (): TurnSupersededError => {
    const error = new TurnSupersededError();
    options.onLost(error);
    return error;
  };

  const renew = async (): Promise<void> => {
    if (ended.signal.aborted) return;
    const safeMs = clock.monotonicMs() + lengthMs(options);
    const renewed = await store.renew({ ...held, untilMs: nextUntilMs() });
    if (!renewed.applied && !isMine(renewed.seen, held)) throw lost();
    safeUntilMs = safeMs;
  };

  const keep = async (kept: Kept): Promise<void> => {
    if (failure) throw failure.error;
    const safeMs = clock.monotonicMs() + lengthMs(options);
    isKept = true;
    const written = await store
      .checkpoint({ ...held, head, revision, kept, untilMs: nextUntilMs() })
      .catch((error: unknown) => {
        failure = { error };
        throw error;
      });
    revision++;
    // Refused where it was applied by an earlier send of the same request: no one else counts on.
    const isDone = written.applied || written.seen?.open?.revision === revision;
    if (!written.applied && !(isDone && isMine(written.seen, held))) throw lost();
    safeUntilMs = safeMs;
  };

  void (async () => {
    for (;;) {
      await clock.sleep(leaseMs / 2, ended.signal);
      if (ended.signal.aborted) return;
      // What fails may be tried again; where the trouble lasts, the next write meets it and tells.
      await afterLast(renew).catch(() => {});
    }
  })();

  return {
    held,
    isKept: () => isKept,
    keep: (kept) => afterLast(() => keep(kept)),
    check: () => {
      if (clock.monotonicMs() >= safeUntilMs) throw lost();
    },
    end: async () => {
      ended.abort(ENDED);
      await last;
    },
  };
};

const isMine = (seen: Head | undefined, { incarnation, fence, attempt }: Held): boolean =>
  seen?.incarnation === incarnation && seen.fence === fence && seen.claim?.attempt === attempt;
