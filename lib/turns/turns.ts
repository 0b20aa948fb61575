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
import type { Head, RecentTurn } from "../store/head.ts";
import { turnKey } from "../store/keys.ts";
import type { SessionStore } from "../store/store.ts";
import { canceller, type NamedTurn } from "./cancel.ts";
import { type Clock, cryptoRandom, type RandomBytes, randomId, systemClock } from "./clock.ts";
import { commit, endOf, release, resultOf } from "./commit.ts";
import { interrupted } from "./displaced.ts";
import { TurnIdReusedError, TurnSupersededError, TurnTimeoutError } from "./errors.ts";
import { executor } from "./execute.ts";
import { fenceAfter, newHead } from "./head.ts";
import { readOpenTurn, readTurns, sealedRecord, wholeHistory } from "./history.ts";
import { ENDED, holdClaim, type LeaseOptions, leaseUntilMs } from "./hold.ts";
import { type Obtained, obtain } from "./obtain.ts";
import {
  checkReplaceable,
  checkTurnRequest,
  newTurnId,
  requestHash,
  type TurnRequest,
} from "./request.ts";
import type { StartedTurn } from "./restore.ts";
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
   * @throws {ModelFailedError, TurnTimeoutError, SessionTooLargeError, TurnInProgressError} where the
   *   turn was run in vain: the history is as it was, and the same turn id goes on from the last step
   *   that had an effect
   * @throws {TurnSupersededError} where another turn took its place, or it was cancelled
   * @throws {SessionNotFoundError} where the session was deleted while the turn ran
   * @throws {StoreUnavailableError} where the outcome is unknown: the same turn id gets the truth
   */
  run(request: TurnRequest): Promise<TurnResult>;
  /**
   * Stops a turn that runs, or that a dead runner left; it can't be run again. Nothing happens where
   * the turn has ended already. Its runner notices when it next writes, within half a lease; one of
   * these `Turns` does at once.
   *
   * @throws {InvalidInputError, SessionNotFoundError, TurnNotFoundError}
   */
  cancel(turn: NamedTurn): Promise<void>;
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
  /** Of this process, by attempt: one that loses its session here needn't wait until the store tells. */
  const runners = new Map<string, (reason: unknown) => void>();
  const onTaken = ({ claim }: Head): void => {
    if (claim) runners.get(claim.attempt)?.(new TurnSupersededError());
  };

  const run = async (unchecked: TurnRequest): Promise<TurnResult> => {
    const request = checkTurnRequest(unchecked, maxInputBytes);
    const { deadlineMs = Number.POSITIVE_INFINITY } = request;
    const lease = { clock, leaseMs: leaseSeconds * 1000, deadlineMs };
    const ended = new AbortController();
    const stopped = new AbortController();
    const signal = AbortSignal.any([stopped.signal, ...(request.signal ? [request.signal] : [])]);
    stopInTime(deadlineMs, ended.signal, stopped);

    try {
      const turn = startTurn(request);
      const obtained = await claimFor(turn, { ...lease, signal });
      if (obtained.kind === "ended") {
        const at = { ...obtained.turn, replayed: true, nowMs: clock.nowMs() };
        return await resultOf(store, obtained.head, at);
      }
      const stop = (reason: unknown) => stopped.abort(reason);
      return await runGranted(turn, obtained, { ...lease, signal, stop });
    } finally {
      ended.abort(ENDED);
    }
  };

  const runGranted = async (
    turn: StartedTurn,
    { head, sinceMs, isNew, over }: Granted,
    { signal, stop, ...lease }: LeaseOptions & Stopping,
  ): Promise<TurnResult> => {
    const { key, attempt, turnKey, open } = turn;
    const held = { key, incarnation: head.incarnation, fence: head.fence, attempt };
    const hold = holdClaim(held, { ...lease, store, head, sinceMs, onLost: stop });
    // All of these overlap the model's first call, so that a turn's critical path is two round trips.
    const known = isNew
      ? Promise.resolve(undefined)
      : sealedRecord(store, head, open.turnId).catch(stop);
    const sealing = store.seal(head).catch(() => undefined);
    const purging = purgeDead(over);
    void known.then((record) => record && stop(new Error("the turn was done before")));
    runners.set(attempt, stop);
    try {
      const { done, supersedes } = await execute(turn, head, { signal, hold, known });
      await hold.end();
      const [sealed] = await Promise.all([sealing, known, purging]);
      signal.throwIfAborted();
      const { requestHash } = open;
      const write = { ...held, head, turnKey, requestHash, turn: done, nowMs: clock.nowMs() };
      const optional = { ...(sealed ? { sealed } : {}), ...(supersedes ? { supersedes } : {}) };
      return await commit(store, { ...write, ...optional });
    } catch (error) {
      await hold.end();
      const [record] = await Promise.all([known, sealing, purging]);
      if (!(error instanceof StoreUnavailableError)) {
        // A turn whose lease ended, and no more than that, is still to be done.
        const keepOpen = hold.isKept() || error instanceof TurnSupersededError;
        await release(store, { ...held, keepOpen });
      }
      if (record) return await replay(turn, head, record);
      if (!(error instanceof TurnSupersededError)) throw error;
      const lost = { ...held, turnKey, turnId: open.turnId, head, nowMs: clock.nowMs() };
      return await endOf(store, lost, await store.read(key));
    } finally {
      runners.delete(attempt);
    }
  };

  const replay = (turn: StartedTurn, head: Head, record: RecentTurn): Promise<TurnResult> => {
    const { turnId, requestHash } = turn.open;
    if (record.requestHash !== requestHash) throw new TurnIdReusedError(turnId);
    return resultOf(store, head, { ...record, replayed: true, nowMs: clock.nowMs() });
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
        ...(request.supersedes === undefined ? {} : { supersedes: request.supersedes }),
      },
    };
  };

  const claimFor = (
    turn: StartedTurn,
    lease: LeaseOptions & { readonly signal: AbortSignal },
  ): Promise<Obtained> => {
    const { key, turnKey, open, attempt, request } = turn;
    return obtain({
      store,
      clock,
      randomBytes,
      signal: lease.signal,
      onBusy: request.onBusy ?? "reject",
      claim: () => ({
        key,
        turnKey,
        claim: { attempt, turnId: open.turnId, untilMs: leaseUntilMs(lease) },
        open,
        ...(request.ifMatch ? { ifMatch: request.ifMatch } : {}),
        nowMs: clock.nowMs(),
      }),
      check: async (seen) => {
        if (request.supersedes === undefined) return;
        const reading = { range: wholeHistory(seen), nowMs: clock.nowMs() };
        checkReplaceable(request.supersedes, await readTurns(store, seen, reading));
      },
      create: (claim, over) => {
        if (request.supersedes !== undefined) checkReplaceable(request.supersedes, []);
        // One for each try: an earlier one may have got through, and be deleted since.
        const incarnation = randomId(randomBytes);
        const createdAt = open.startedAt;
        const head = newHead({ key, incarnation, createdAt, lifetimeSeconds, nowMs: claim.nowMs });
        return {
          ...head,
          fence: fenceAfter(over) + 1,
          claim: claim.claim,
          open: { ...open, steps: 0, revision: 0 },
        };
      },
      onTaken,
      findRecord: (head) => sealedRecord(store, head, open.turnId),
      interrupted: async (head) => {
        const stored = await readOpenTurn(store, head, clock.nowMs());
        if (!stored) return undefined;
        const sealed = await store.seal(head);
        return { ...interrupted(head, stored, { agent, nowMs: clock.nowMs() }), sealed };
      },
    });
  };

  /** What a dead namesake left, as far as it goes: once its HEAD is written over, nothing else leads there. */
  const purgeDead = async (over: Head | undefined): Promise<void> => {
    if (!over) return;
    await store.purge({ key: over, incarnation: over.incarnation }).catch(() => {});
  };

  return { run, cancel: canceller({ store, clock, onTaken }) };
};

type Granted = Extract<Obtained, { kind: "granted" }>;

interface Stopping {
  readonly signal: AbortSignal;
  readonly stop: (reason: unknown) => void;
}

/** The store ends every operation within 5 s (see `dynamoClient`): a commit or a release, and the answer. */
const TIDY_UP_MS = 6000;
