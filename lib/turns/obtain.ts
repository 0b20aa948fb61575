import type { Head, RecentTurn } from "../store/head.ts";
import type { Claim, ClaimResult, Displaced, SessionStore } from "../store/store.ts";
import { type Clock, type RandomBytes, randomFraction } from "./clock.ts";
import { type Decision, decide } from "./decide.ts";
import { abandoned } from "./displaced.ts";
import {
  SessionBusyError,
  SessionNotFoundError,
  TurnIdReusedError,
  TurnInProgressError,
  TurnTimeoutError,
  VersionMismatchError,
} from "./errors.ts";
import type { OnBusy } from "./request.ts";

export type Obtained =
  | {
      readonly kind: "granted";
      readonly head: Head;
      /** On the monotonic clock, from before the claim was sent. */
      readonly sinceMs: number;
      /** Whether the turn's own record was looked for, in vain, since another could have written it. */
      readonly isNew: boolean;
      /** The dead session that was written over. */
      readonly over?: Head;
    }
  | { readonly kind: "ended"; readonly head: Head; readonly turn: RecentTurn };

export interface Obtaining {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly signal: AbortSignal;
  readonly onBusy: OnBusy;
  /** The claim as it is made now: its times move from try to try. */
  readonly claim: () => Claim;
  /** The session with this claim in it, for where there is none yet. */
  readonly create: (claim: Claim, over: Head | undefined) => Head;
  /** The record of the turn, where it has left HEAD. */
  readonly findRecord: (head: Head) => Promise<RecentTurn | undefined>;
  /** What is kept of a turn that is interrupted; undefined where it has gone on meanwhile. */
  readonly interrupted: (head: Head) => Promise<Displaced | undefined>;
  /** Rejects where the turn can't be done on what was seen: nobody else's is pushed aside for it then. */
  readonly check: (seen: Head) => Promise<void>;
  /** Another runner's claim, as it was seen, is this turn's now. */
  readonly onTaken: (seen: Head) => void;
}

/**
 * Gets the session for a turn, or the turn's outcome where it has one already. One write for a
 * session at rest; every refusal is looked at before anything more is tried.
 *
 * @throws {SessionBusyError, TurnInProgressError, TurnIdReusedError, VersionMismatchError}
 * @throws {SessionNotFoundError} where the session was seen, and is deleted or expires before the turn gets it
 */
export const obtain = async (obtaining: Obtaining): Promise<Obtained> => {
  const { store, clock, signal } = obtaining;
  const firstMs = clock.monotonicMs();
  let waits = 0;
  let waitedFor: Busy | undefined;
  /** Of the session, once it was seen alive. */
  let life: string | undefined;
  let claim = obtaining.claim();
  let next: Obtained | Tried = await plainClaim(store, claim, firstMs);
  // Ends: each refusal shows that another runner got ahead since the last look, or is waited for.
  while (next.kind === "refused") {
    const sinceMs = clock.monotonicMs();
    claim = obtaining.claim();
    const { seen } = next;
    const decision = decide(seen, claim);
    const present = decision.kind === "absent" ? undefined : seen?.incarnation;
    if (life !== undefined && present !== life) throw new SessionNotFoundError(claim.key.sessionId);
    life = present;
    if (decision.kind === "busy") waitedFor = decision;
    if (signal.aborted && decision.kind !== "mine") {
      const isOver = signal.reason instanceof TurnTimeoutError;
      throw isOver && waitedFor ? busy(waitedFor, clock) : signal.reason;
    }
    switch (decision.kind) {
      case "mine":
        // Which of the sends it was that got through isn't known.
        return { kind: "granted", head: decision.head, sinceMs: firstMs, isNew: false };
      case "ended":
        return decision;
      case "reused":
        throw new TurnIdReusedError(claim.open.turnId);
      case "open otherwise": {
        const ended = await endedLongAgo(obtaining, claim, decision.head);
        if (ended) return ended;
        throw new TurnIdReusedError(claim.open.turnId);
      }
      case "mismatch":
        throw new VersionMismatchError(decision.head);
      case "absent":
        next = await create(obtaining, claim, { over: seen, sinceMs });
        break;
      case "free":
        next = await plainClaim(
          store,
          { ...claim, incarnation: decision.head.incarnation },
          sinceMs,
        );
        break;
      case "left":
        next = await takeOver(obtaining, claim, { seen: decision.head, sinceMs });
        break;
      case "busy": {
        const isPushed = !decision.same && PUSHING.has(obtaining.onBusy);
        if (isPushed) {
          next = await takeOver(obtaining, claim, { seen: decision.head, sinceMs });
          break;
        }
        // HEAD may have forgotten the turn, and its result is there for whoever asks.
        const ended = waits === 0 && (await endedLongAgo(obtaining, claim, decision.head));
        if (ended) return ended;
        if (obtaining.onBusy !== "wait") throw busy(decision, clock);
        next = await wait(obtaining, decision, waits++);
      }
    }
  }
  return next;
};

const PUSHING: ReadonlySet<OnBusy> = new Set(["interrupt", "rollback"]);

/** Not granted: what was seen there instead. */
interface Refused {
  readonly kind: "refused";
  readonly seen: Head | undefined;
}

type Tried = Extract<Obtained, { kind: "granted" }> | Refused;

const tried = (result: ClaimResult, sinceMs: number, isNew: boolean): Tried =>
  result.applied
    ? { kind: "granted", head: result.head, sinceMs, isNew }
    : { kind: "refused", seen: result.seen };

const plainClaim = async (store: SessionStore, claim: Claim, sinceMs: number): Promise<Tried> =>
  tried(await store.claim(claim), sinceMs, false);

const create = async (
  { store, create: headOf }: Obtaining,
  claim: Claim,
  { over, sinceMs }: { readonly over: Head | undefined; readonly sinceMs: number },
): Promise<Tried> => {
  if (claim.ifMatch) throw new VersionMismatchError(undefined);
  const head = headOf(claim, over);
  const dead = over ? { over } : {};
  const created = await store.create({ head, nowMs: claim.nowMs, ...dead });
  return created.applied
    ? { kind: "granted", head, sinceMs, isNew: true, ...dead }
    : { kind: "refused", seen: created.seen };
};

/**
 * In place of what was seen. The turn may have ended so long ago that HEAD has forgotten it, and
 * must not push another one aside then: its record is looked for first, and nobody can have written
 * one since where the claim then stands as it was seen.
 */
const takeOver = async (
  obtaining: Obtaining,
  claim: Claim,
  { seen, sinceMs }: { readonly seen: Head; readonly sinceMs: number },
): Promise<Obtained | Refused> => {
  const { store, onBusy, interrupted, check, onTaken } = obtaining;
  const ended = await endedLongAgo(obtaining, claim, seen);
  if (ended) return ended;
  await check(seen);
  const { open } = seen;
  const isRunning = seen.claim !== undefined && seen.claim.untilMs > claim.nowMs;
  let displaced = open?.turnId === claim.open.turnId ? undefined : abandoned(seen);
  // A turn that was to take an earlier one's place leaves it where it is.
  if (isRunning && onBusy === "interrupt" && open && open.steps > 0 && !open.supersedes) {
    displaced = await interrupted(seen);
    if (!displaced) return { kind: "refused", seen: await store.read(seen) };
  }
  const result = await store.takeOver({ ...claim, seen, ...(displaced ? { displaced } : {}) });
  if (result.applied) onTaken(seen);
  return tried(result, sinceMs, true);
};

/** @throws {TurnIdReusedError} */
const endedLongAgo = async (
  { findRecord }: Obtaining,
  { open }: Claim,
  head: Head,
): Promise<Extract<Obtained, { kind: "ended" }> | undefined> => {
  const turn = await findRecord(head);
  if (turn && turn.requestHash !== open.requestHash) throw new TurnIdReusedError(open.turnId);
  return turn && { kind: "ended", head, turn };
};

type Busy = Extract<Decision, { kind: "busy" }>;

/** Looks again after a while. Reads cost a sixth of a refused claim. */
const wait = async (
  { store, clock, signal, randomBytes }: Obtaining,
  decision: Busy,
  waits: number,
): Promise<Refused> => {
  await clock.sleep(pauseMs(randomBytes, waits), signal);
  const seen = signal.aborted ? decision.head : await store.read(decision.head);
  return { kind: "refused", seen };
};

/** A random part, so that many who wait don't all come at once, and each has the same chance. */
const pauseMs = (randomBytes: RandomBytes, waits: number): number => {
  const longestMs = Math.min(MAX_PAUSE_MS, 50 * 2 ** waits);
  return Math.round(longestMs * (0.5 + randomFraction(randomBytes) / 2));
};

const MAX_PAUSE_MS = 500;

const busy = ({ same, untilMs }: Busy, clock: Clock): SessionBusyError => {
  const seconds = Math.ceil((untilMs - clock.nowMs()) / 1000);
  // Most turns end long before their lease does, so a caller needn't wait for all of it.
  const retryAfterSeconds = Math.min(5, Math.max(1, seconds));
  return same
    ? new TurnInProgressError(retryAfterSeconds)
    : new SessionBusyError(retryAfterSeconds);
};
