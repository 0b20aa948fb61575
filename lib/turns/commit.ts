import { StoreUnavailableError } from "../store/errors.ts";
import { type Head, isAlive, type RecentTurn } from "../store/head.ts";
import { isCallersTurnId } from "../store/keys.ts";
import type { Commit, Held, Release, SessionStore } from "../store/store.ts";
import {
  givenUp,
  SessionNotFoundError,
  TurnInProgressError,
  TurnSupersededError,
} from "./errors.ts";
import { readTurns } from "./history.ts";
import { type TurnResult, turnResult } from "./result.ts";

/**
 * Appends a turn to the history. A refused commit may be one's own, applied by an earlier send of
 * the same request: what stands there says so, and nothing else does.
 */
export const commit = async (store: SessionStore, write: Commit): Promise<TurnResult> => {
  const { key, head, turn } = write;
  const written = await store.commit(write);
  return written.applied
    ? turnResult(key.sessionId, turn, { version: head.version, replayed: false })
    : endOf(store, { ...write, turnId: turn.turnId }, written.seen);
};

export interface LostTurn extends Held {
  readonly turnId: string;
  readonly turnKey: string;
  /** The session that the turn was run on. */
  readonly head: Head;
  readonly nowMs: number;
}

/**
 * What became of a turn that isn't the runner's own any more, or whose commit was refused.
 *
 * @throws {SessionNotFoundError, TurnSupersededError} where it isn't in the history
 * @throws {TurnInProgressError} where that isn't decided: another try of it may be at work
 */
export const endOf = async (
  store: SessionStore,
  lost: LostTurn,
  seen: Head | undefined,
): Promise<TurnResult> => {
  const { key, incarnation, turnId, turnKey, attempt, nowMs } = lost;
  if (seen?.incarnation !== incarnation || seen.deletedAtSeconds !== undefined) {
    throw endedMeanwhile(key.sessionId, "was deleted");
  }
  const recorded = seen.recent.get(turnKey) ?? (await findSealed(store, lost, seen));
  if (!recorded && !isAlive(seen, nowMs)) throw endedMeanwhile(key.sessionId, "expired");
  const isOpen = seen.open?.turnId === turnId && isCallersTurnId(turnId);
  if (!recorded) throw isOpen ? new TurnInProgressError(1) : new TurnSupersededError();
  const replayed = recorded.attempt !== attempt;
  return resultOf(store, seen, { ...recorded, replayed, nowMs });
};

const endedMeanwhile = (sessionId: string, how: string): SessionNotFoundError =>
  new SessionNotFoundError(sessionId, `session ${sessionId} ${how} while the turn ran`);

type Ended = Pick<RecentTurn, "version" | "attempt" | "outcome">;

/**
 * The turn's record where later turns have pushed it out of HEAD already. Of an id of our own none
 * is kept: whether it was done, the history at its version tells.
 */
const findSealed = async (
  store: SessionStore,
  { key, incarnation, attempt, turnKey, turnId, head, nowMs }: LostTurn,
  seen: Head,
): Promise<Ended | undefined> => {
  const { version } = head;
  if (seen.version === version) return undefined;
  if (isCallersTurnId(turnId)) return store.findTurn({ key, incarnation }, turnKey);
  const range = { from: version, to: version + 1 };
  const [there] = await readTurns(store, seen, { range, nowMs });
  return there?.turnId === turnId ? { version, attempt, outcome: "done" } : undefined;
};

/**
 * The result of a turn that has ended: `version` is its number in the history.
 *
 * @throws {TurnSupersededError} where it was given up: that is its outcome
 */
export const resultOf = async (
  store: SessionStore,
  head: Head,
  at: Pick<Ended, "version" | "outcome"> & { readonly replayed: boolean; readonly nowMs: number },
): Promise<TurnResult> => {
  const { version, outcome, nowMs } = at;
  if (outcome === "abandoned") throw givenUp();
  const range = { from: version, to: version + 1 };
  const [turn] = await readTurns(store, await headWith(store, head, version), { range, nowMs });
  if (!turn)
    throw new Error(
      `session ${head.sessionId}: turn ${version} is recorded and not in the history`,
    );
  return turnResult(head.sessionId, turn, at);
};

/** A record in the index may be newer than the HEAD that was seen before it was looked for. */
const headWith = async (store: SessionStore, head: Head, version: number): Promise<Head> => {
  if (version < head.version) return head;
  const now = await store.read(head);
  if (now?.incarnation !== head.incarnation || now.deletedAtSeconds !== undefined) {
    throw new SessionNotFoundError(head.sessionId);
  }
  return now;
};

/** As far as it goes: a claim that can't be released ends with its lease. */
export const release = async (store: SessionStore, write: Release): Promise<void> => {
  try {
    await store.release(write);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
  }
};
