import type { DoneTurn } from "../session/turn.ts";
import { DamagedSessionError } from "../store/errors.ts";
import { type Head, isAlive, type RecentTurn, type WholeOpenTurn } from "../store/head.ts";
import { isCallersTurnId, turnKey } from "../store/keys.ts";
import type { SessionStore, TurnRange } from "../store/store.ts";
import { SessionNotFoundError } from "./errors.ts";

/**
 * Turns of a session's history. One that is missing is the session's damage only where the session
 * still stands: it may have been deleted since its HEAD was read.
 *
 * @throws {SessionNotFoundError, DamagedSessionError}
 */
export const readTurns = async (
  store: SessionStore,
  head: Head,
  { range, nowMs }: { readonly range: TurnRange; readonly nowMs: number },
): Promise<DoneTurn[]> => {
  try {
    return await store.turns(head, range);
  } catch (error) {
    if (await isGone(store, head, { error, nowMs })) throw new SessionNotFoundError(head.sessionId);
    throw error;
  }
};

/**
 * The open turn with its steps; undefined where it has gone on since HEAD was read, or the session is
 * deleted, and with it what the turn had kept.
 *
 * @throws {DamagedSessionError}
 */
export const readOpenTurn = async (
  store: SessionStore,
  head: Head,
  nowMs: number,
): Promise<WholeOpenTurn | undefined> => {
  try {
    return await store.openTurn(head);
  } catch (error) {
    if (await isGone(store, head, { error, nowMs })) return undefined;
    throw error;
  }
};

const isGone = async (
  store: SessionStore,
  head: Head,
  { error, nowMs }: { readonly error: unknown; readonly nowMs: number },
): Promise<boolean> => {
  if (!(error instanceof DamagedSessionError)) return false;
  const now = await store.read(head);
  return now?.incarnation !== head.incarnation || !isAlive(now, nowMs);
};

/**
 * What became of a turn whose record has left HEAD. It says something of a turn that isn't there only
 * where nobody can add it meanwhile: in a session that is the runner's own, or that then stands as it
 * was seen.
 */
export const sealedRecord = async (
  store: SessionStore,
  head: Head,
  turnId: string,
): Promise<RecentTurn | undefined> =>
  head.tailFrom > 1 && isCallersTurnId(turnId)
    ? store.findTurn({ key: head, incarnation: head.incarnation }, turnKey(turnId))
    : undefined;

export const wholeHistory = (head: Head): TurnRange => ({ from: 1, to: head.version });

/** The newest turns, no more than `turns`. */
export const newestTurns = (head: Head, turns: number): TurnRange => ({
  from: Math.max(1, head.version - turns),
  to: head.version,
});

/** The numbers of the turns that later ones of the same history superseded. */
export const supersededIn = (turns: readonly DoneTurn[]): number[] => {
  const ids = new Set(turns.flatMap(({ supersedes }) => supersedes ?? []));
  return turns.flatMap(({ turnId }, index) => (ids.has(turnId) ? [index + 1] : []));
};
