import type { Claim, ClaimResult, Head, RecentTurn, SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { decide } from "./decide.ts";
import {
  SessionBusyError,
  TurnIdReusedError,
  TurnInProgressError,
  VersionMismatchError,
} from "./errors.ts";

export type Obtained =
  | {
      readonly kind: "granted";
      readonly head: Head;
      /** The dead session that was written over. */
      readonly over?: Head;
    }
  | { readonly kind: "done"; readonly head: Head; readonly turn: RecentTurn };

export interface Obtaining {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The claim as it is made now: its times move from try to try. */
  readonly claim: () => Claim;
  /** The session with this claim in it, for where there is none yet. */
  readonly create: (claim: Claim) => Head;
}

/**
 * Gets the session for a turn, or the turn's outcome where it is done already. One write for a
 * session at rest; every refusal is looked at before anything more is tried.
 *
 * @throws {SessionBusyError, TurnInProgressError, TurnIdReusedError, VersionMismatchError}
 */
export const obtain = async (obtaining: Obtaining): Promise<Obtained> => {
  const { store, clock, signal } = obtaining;
  let claim = obtaining.claim();
  let result: ClaimResult = await store.claim(claim);
  // Ends: each refusal shows that another runner got ahead since the last look.
  for (;;) {
    if (result.applied) return { kind: "granted", head: result.head };
    signal.throwIfAborted();
    claim = obtaining.claim();
    const decision = decide(result.seen, claim);
    switch (decision.kind) {
      case "mine":
        return { kind: "granted", head: decision.head };
      case "done":
        return decision;
      case "reused":
        throw new TurnIdReusedError(claim.open.turnId);
      case "mismatch":
        throw new VersionMismatchError(decision.head);
      case "in_progress":
        throw new TurnInProgressError(retryAfterSeconds(decision.untilMs - clock.nowMs()));
      case "busy":
        throw new SessionBusyError(retryAfterSeconds(decision.untilMs - clock.nowMs()));
      case "abandoned":
        result = await store.takeOver({ ...claim, seen: decision.head });
        break;
      case "absent": {
        if (claim.ifMatch) throw new VersionMismatchError(undefined);
        const head = obtaining.create(claim);
        const over = result.seen;
        const dead = over ? { over } : {};
        const created = await store.create({ head, nowMs: claim.nowMs, ...dead });
        if (created.applied) return { kind: "granted", head, ...dead };
        result = created;
      }
    }
  }
};

/** Most turns end long before their lease does, so a caller needn't wait for all of it. */
const retryAfterSeconds = (leftMs: number): number =>
  Math.min(5, Math.max(1, Math.ceil(leftMs / 1000)));
