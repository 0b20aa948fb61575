import { StoreUnavailableError } from "../store/errors.ts";
import { isCallersTurnId } from "../store/keys.ts";
import { type Commit, type Head, type Held, isAlive, type SessionStore } from "../store/store.ts";
import { SessionNotFoundError, TurnSupersededError } from "./errors.ts";
import { readTurns } from "./history.ts";
import { type TurnResult, turnResult } from "./result.ts";

/**
 * Appends a turn to the history. A refused commit may be one's own, applied by an earlier send of
 * the same request: what stands there says so, and nothing else does.
 */
export const commit = async (store: SessionStore, write: Commit): Promise<TurnResult> => {
  const { key, incarnation, head, turn, nowMs } = write;
  const written = await store.commit(write);
  if (written.applied)
    return turnResult(key.sessionId, turn, { version: head.version, replayed: false });

  const { seen } = written;
  if (seen?.incarnation !== incarnation || seen.deletedAtSeconds !== undefined) {
    throw endedMeanwhile(key.sessionId, "was deleted");
  }
  const recorded =
    seen.recent.get(write.turnKey) ?? (await findSealed(store, write, { seen, nowMs }));
  if (!recorded && !isAlive(seen, nowMs)) throw endedMeanwhile(key.sessionId, "expired");
  if (!recorded) throw new TurnSupersededError();
  return resultAt(store, seen, {
    version: recorded.version,
    replayed: recorded.attempt !== write.attempt,
    nowMs,
  });
};

const endedMeanwhile = (sessionId: string, how: string): SessionNotFoundError =>
  new SessionNotFoundError(sessionId, `session ${sessionId} ${how} while the turn ran`);

/**
 * The turn's record where later turns have pushed it out of HEAD already. Of an id of our own none
 * is kept: whether it was done, the history at its version tells.
 */
const findSealed = async (
  store: SessionStore,
  { key, incarnation, attempt, turnKey, turn, head }: Commit,
  { seen, nowMs }: { readonly seen: Head; readonly nowMs: number },
): Promise<{ readonly version: number; readonly attempt: string } | undefined> => {
  const { version } = head;
  if (seen.version === version) return undefined;
  if (isCallersTurnId(turn.turnId)) return store.findTurn({ key, incarnation }, turnKey);
  const [there] = await readTurns(store, seen, {
    range: { from: version, to: version + 1 },
    nowMs,
  });
  return there?.turnId === turn.turnId ? { version, attempt } : undefined;
};

/** The result of the turn that was decided on a version, which is its number in the history. */
export const resultAt = async (
  store: SessionStore,
  head: Head,
  at: { readonly version: number; readonly replayed: boolean; readonly nowMs: number },
): Promise<TurnResult> => {
  const { version, nowMs } = at;
  const [turn] = await readTurns(store, head, { range: { from: version, to: version + 1 }, nowMs });
  if (!turn)
    throw new Error(
      `session ${head.sessionId}: turn ${version} is recorded and not in the history`,
    );
  return turnResult(head.sessionId, turn, at);
};

/** As far as it goes: a claim that can't be released ends with its lease. */
export const release = async (store: SessionStore, held: Held): Promise<void> => {
  try {
    await store.release(held);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
  }
};
