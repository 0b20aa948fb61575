import type { DoneTurn } from "../session/turn.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import type { Head, Held, SessionStore } from "../store/store.ts";
import { SessionNotFoundError, TurnSupersededError } from "./errors.ts";
import { countsOf } from "./head.ts";
import { resultOf, type TurnResult, turnResult } from "./result.ts";

export interface Decided {
  readonly held: Held;
  /** The session that the turn was decided on. */
  readonly head: Head;
  readonly turnKey: string;
  readonly requestHash: string;
}

/**
 * Appends a turn to the history. A refused commit may be one's own, applied by an earlier send of
 * the same request: what stands there says so, and nothing else does.
 */
export const commit = async (
  store: SessionStore,
  turn: DoneTurn,
  decided: Decided,
): Promise<TurnResult> => {
  const { held, head, turnKey, requestHash } = decided;
  const { version } = head;
  const tail = [...head.tail, turn];
  const written = await store.commit({
    ...held,
    version,
    turnKey,
    requestHash,
    tail,
    counts: countsOf(tail),
    updatedAt: turn.finishedAt,
  });
  if (written.applied) return turnResult(held.key.sessionId, turn, { version, replayed: false });

  const { seen } = written;
  if (seen?.incarnation !== held.incarnation || seen.deletedAtSeconds !== undefined) {
    throw new SessionNotFoundError(held.key.sessionId);
  }
  const recorded = seen.recent.get(turnKey);
  if (!recorded) throw new TurnSupersededError();
  return resultOf(seen, recorded, recorded.attempt !== held.attempt);
};

/** As far as it goes: a claim that can't be released ends with its lease. */
export const release = async (store: SessionStore, held: Held): Promise<void> => {
  try {
    await store.release(held);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
  }
};
