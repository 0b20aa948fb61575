/**
 * One turn: claim the session, restore it, run the agent, commit.
 *
 * The rule that everything here keeps: a turn is in the history once, whole, and decided on the
 * history that stands before it, or it is not there at all; and the caller is never told one where
 * the other is true.
 */
import type { Agent } from "../agent/agent.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import { isCallersTurnId, turnKey } from "../store/keys.ts";
import type { Head, RecentTurn, SessionStore } from "../store/store.ts";
import { type Clock, cryptoRandom, type RandomBytes, randomId, systemClock } from "./clock.ts";
import { commit, release, resultAt } from "./commit.ts";
import { TurnIdReusedError, TurnSupersededError, TurnTimeoutError } from "./errors.ts";
import { executor, type StartedTurn } from "./execute.ts";
import { newHead } from "./head.ts";
import { keepLease, leaseUntilMs } from "./lease.ts";
import { type Obtained, obtain } from "./obtain.ts";
import {
  checkReplaceable,
  checkTurnRequest,
  newTurnId,
  requestHash,
  type TurnRequest,
} from "./request.ts";
import type { TurnResult } from "./result.ts";

export interface TurnsOptions {
  readonly agent: Agent;
  readonly store: SessionStore;
  /** From a session's `created_at` to its expiry. 30 days by default. */
  readonly lifetimeSeconds?: number;
  /** How long a dead runner holds its session. 30 by default. */
  readonly leaseSeconds?: number;
  /** 262,144 by default. */
  readonly maxInputBytes?: number;
  /**
   * Of history as JSON that is restored for a turn: the process holds it in memory. 64 MB by default.
   * An agent with a window restores no more than that.
   */
  readonly maxHistoryBytes?: number;
  readonly clock?: Clock;
  readonly randomBytes?: RandomBytes;
}

export interface Turns {
  /**
   * Runs one turn, or gives the result of the turn of that id that was run before. A session that
   * doesn't exist is created.
   *
   * @throws {InvalidInputError, InputTooLargeError} for a bad request: nothing was done
   * @throws {SessionBusyError, TurnInProgressError, VersionMismatchError, TurnIdReusedError} before
   *   the model was called
   * @throws {ModelFailedError, TurnTimeoutError, SessionTooLargeError, TurnSupersededError} where
   *   the turn was run in vain: the history is as it was
   * @throws {SessionNotFoundError} where the session was deleted while the turn ran
   * @throws {StoreUnavailableError} where the outcome is unknown: the same turn id gets the truth
   */
  run(request: TurnRequest): Promise<TurnResult>;
}

export const DEFAULT_LIFETIME_SECONDS = 30 * 86_400;
export const DEFAULT_LEASE_SECONDS = 30;
export const DEFAULT_MAX_INPUT_BYTES = 256 * 1024;
export const DEFAULT_MAX_HISTORY_BYTES = 64_000_000;

export const createTurns = ({
  agent,
  store,
  lifetimeSeconds = DEFAULT_LIFETIME_SECONDS,
  leaseSeconds = DEFAULT_LEASE_SECONDS,
  maxInputBytes = DEFAULT_MAX_INPUT_BYTES,
  maxHistoryBytes = DEFAULT_MAX_HISTORY_BYTES,
  clock = systemClock,
  randomBytes = cryptoRandom,
}: TurnsOptions): Turns => {
  const execute = executor({ agent, store, clock, maxHistoryBytes });

  const run = async (unchecked: TurnRequest): Promise<TurnResult> => {
    const request = checkTurnRequest(unchecked, maxInputBytes);
    const { deadlineMs = Number.POSITIVE_INFINITY } = request;
    const lease = { store, clock, leaseMs: leaseSeconds * 1000, deadlineMs };
    const ended = new AbortController();
    const stopped = new AbortController();
    const signal = AbortSignal.any([stopped.signal, ...(request.signal ? [request.signal] : [])]);
    stopInTime(deadlineMs, ended.signal, stopped);

    try {
      const turn = startTurn(request);
      const obtained = await claimFor(turn, { ...lease, signal });
      const nowMs = clock.nowMs();
      if (obtained.kind === "done") {
        return await resultAt(store, obtained.head, { ...obtained.turn, replayed: true, nowMs });
      }

      const { head } = obtained;
      const held = {
        key: turn.key,
        incarnation: head.incarnation,
        fence: head.fence,
        attempt: turn.attempt,
      };
      const stop = (reason: unknown) => stopped.abort(reason);
      const renewing = keepLease(held, lease, {
        ended: ended.signal,
        onLost: () => stop(new TurnSupersededError()),
      });
      // Both overlap the model's first call, so that a turn's critical path is two round trips.
      const known = findKnown(turn, head).catch(stop);
      const sealing = store.seal(head).catch(() => undefined);
      const purging = purgeDead(obtained.over);
      void known.then((record) => record && stop(new Error("the turn was done before")));
      try {
        const { done, supersedes } = await execute(turn, head, { signal, known });
        ended.abort();
        const [sealed] = await Promise.all([sealing, known, renewing, purging]);
        signal.throwIfAborted();
        const { turnKey, open } = turn;
        const write = { ...held, head, turnKey, requestHash: open.requestHash, turn: done };
        const optional = { ...(sealed ? { sealed } : {}), ...(supersedes ? { supersedes } : {}) };
        return await commit(store, { ...write, ...optional, nowMs: clock.nowMs() });
      } catch (error) {
        ended.abort();
        const [record] = await Promise.all([known, sealing, renewing, purging]);
        if (!(error instanceof StoreUnavailableError)) await release(store, held);
        if (!record) throw error;
        if (record.requestHash !== turn.open.requestHash)
          throw new TurnIdReusedError(turn.open.turnId);
        return await resultAt(store, head, { version: record.version, replayed: true, nowMs });
      }
    } finally {
      ended.abort();
    }
  };

  /** Stops the turn early enough before the caller's end to release the session and to answer. */
  const stopInTime = (deadlineMs: number, ended: AbortSignal, stopped: AbortController): void => {
    const leftMs = deadlineMs - clock.nowMs();
    if (leftMs === Number.POSITIVE_INFINITY) return;
    const workMs = leftMs - Math.min(TIDY_UP_MS, leftMs / 4);
    void clock.sleep(workMs, ended).then(() => {
      if (!ended.aborted) stopped.abort(new TurnTimeoutError());
    });
  };

  const startTurn = (request: TurnRequest): StartedTurn => {
    const turnId = request.turnId ?? newTurnId(randomId(randomBytes));
    return {
      request,
      key: { owner: request.owner, sessionId: request.sessionId },
      turnKey: turnKey(turnId),
      attempt: randomId(randomBytes),
      open: {
        status: "open",
        turnId,
        requestHash: requestHash(request),
        input: request.input,
        startedAt: formatTimestamp(clock.nowMs()),
      },
    };
  };

  const claimFor = (
    turn: StartedTurn,
    lease: Parameters<typeof leaseUntilMs>[0] & { signal: AbortSignal },
  ): Promise<Obtained> => {
    const { key, turnKey, open, attempt, request } = turn;
    const incarnation = randomId(randomBytes);
    return obtain({
      store,
      clock,
      signal: lease.signal,
      claim: () => ({
        key,
        turnKey,
        claim: { attempt, turnId: open.turnId, untilMs: leaseUntilMs(lease) },
        open,
        ...(request.ifMatch ? { ifMatch: request.ifMatch } : {}),
        nowMs: clock.nowMs(),
      }),
      create: (claim) => {
        if (request.supersedes !== undefined) checkReplaceable(request.supersedes, []);
        const createdAt = open.startedAt;
        const head = newHead({ key, incarnation, createdAt, lifetimeSeconds, nowMs: claim.nowMs });
        return { ...head, fence: 1, claim: claim.claim, open };
      },
    });
  };

  /** What a dead namesake left, as far as it goes: once its HEAD is written over, nothing else leads there. */
  const purgeDead = async (over: Head | undefined): Promise<void> => {
    if (!over) return;
    await store.purge({ key: over, incarnation: over.incarnation }).catch(() => {});
  };

  /**
   * The record of a turn whose id came before, and so long ago that HEAD has forgotten it. Looked for
   * when the session is the runner's own, so that nobody can add it meanwhile.
   */
  const findKnown = async (turn: StartedTurn, head: Head): Promise<RecentTurn | undefined> => {
    if (head.tailFrom === 1 || !isCallersTurnId(turn.open.turnId)) return undefined;
    return store.findTurn({ key: turn.key, incarnation: head.incarnation }, turn.turnKey);
  };

  return { run };
};

/** The store ends every operation within 5 s (see `dynamoClient`): a commit or a release, and the answer. */
const TIDY_UP_MS = 6000;
