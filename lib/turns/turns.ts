/**
 * One turn: claim the session, restore it, run the agent, commit.
 *
 * The rule that everything here keeps: a turn is in the history once, whole, and decided on the
 * history that stands before it, or it is not there at all; and the caller is never told one where
 * the other is true.
 */
import type { Agent, RunResult } from "../agent/agent.ts";
import { Session } from "../session/session.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, type OpenTurn, visibleMessages } from "../session/turn.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import { turnKey } from "../store/keys.ts";
import type { Claim, Head, SessionStore } from "../store/store.ts";
import { type Clock, cryptoRandom, type RandomBytes, randomId, systemClock } from "./clock.ts";
import { commit, release } from "./commit.ts";
import { TurnSupersededError, TurnTimeoutError } from "./errors.ts";
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
import { resultOf, type TurnResult } from "./result.ts";

export interface TurnsOptions {
  readonly agent: Agent;
  readonly store: SessionStore;
  /** From a session's `created_at` to its expiry. 30 days by default. */
  readonly lifetimeSeconds?: number;
  /** How long a dead runner holds its session. 30 by default. */
  readonly leaseSeconds?: number;
  /** 262,144 by default. */
  readonly maxInputBytes?: number;
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

export const createTurns = ({
  agent,
  store,
  lifetimeSeconds = DEFAULT_LIFETIME_SECONDS,
  leaseSeconds = DEFAULT_LEASE_SECONDS,
  maxInputBytes = DEFAULT_MAX_INPUT_BYTES,
  clock = systemClock,
  randomBytes = cryptoRandom,
}: TurnsOptions): Turns => {
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
      if (obtained.kind === "done") return resultOf(obtained.head, obtained.turn, true);

      const { head } = obtained;
      const held = {
        key: turn.key,
        incarnation: head.incarnation,
        fence: head.fence,
        attempt: turn.attempt,
      };
      const renewing = keepLease(held, lease, {
        ended: ended.signal,
        onLost: () => stopped.abort(new TurnSupersededError()),
      });
      try {
        const done = await runTurn(turn, head, signal);
        ended.abort();
        await renewing;
        return await commit(store, done, {
          head,
          held,
          turnKey: turn.turnKey,
          requestHash: turn.open.requestHash,
        });
      } catch (error) {
        ended.abort();
        await renewing;
        if (!(error instanceof StoreUnavailableError)) await release(store, held);
        throw error;
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

  const runTurn = async (turn: StartedTurn, head: Head, signal: AbortSignal): Promise<DoneTurn> => {
    const { request, open } = turn;
    const { supersedes } = request;
    if (supersedes !== undefined) checkReplaceable(supersedes, head.tail);
    const session = new Session({
      sessionId: head.sessionId,
      createdAt: head.createdAt,
      metadata: head.metadata,
      messages: visibleMessages(head.tail, supersedes),
    });
    const before = session.messages.length;
    const result: RunResult = await agent.runTurn(session, request.input, {
      signal,
      turnId: open.turnId,
      idempotencyScope: head.incarnation,
      ...(request.onEvent ? { onEvent: request.onEvent } : {}),
    });
    return {
      status: "done",
      turnId: open.turnId,
      messages: result.messages.slice(before),
      startedAt: open.startedAt,
      finishedAt: formatTimestamp(clock.nowMs()),
      finish: result.finish,
      usage: result.usage,
      ...(supersedes === undefined ? {} : { supersedes }),
    };
  };

  return { run };
};

/** The store ends every operation within 5 s (see `dynamoClient`): a commit or a release, and the answer. */
const TIDY_UP_MS = 6000;

interface StartedTurn {
  readonly request: TurnRequest;
  readonly key: Claim["key"];
  readonly turnKey: string;
  readonly attempt: string;
  readonly open: OpenTurn;
}
