import { checkSessionId } from "../session/session.ts";
import { type Head, isAlive } from "../store/head.ts";
import { checkOwner, turnKey } from "../store/keys.ts";
import type { SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { cancelled } from "./displaced.ts";
import { SessionNotFoundError } from "./errors.ts";
import { findTurn } from "./find.ts";
import { sealedRecord } from "./history.ts";
import { checkTurnName } from "./request.ts";

export interface NamedTurn {
  readonly owner: string;
  readonly sessionId: string;
  readonly turnId: string;
}

export interface CancellerOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  /** The turn's runner, if it has one, has lost the session that was seen. */
  readonly onTaken: (seen: Head) => void;
}

/** @throws {InvalidInputError, SessionNotFoundError, TurnNotFoundError} */
export const canceller =
  ({ store, clock, onTaken }: CancellerOptions) =>
  async ({ owner, sessionId, turnId }: NamedTurn): Promise<void> => {
    const key = {
      owner: checkOwner(owner, "owner"),
      sessionId: checkSessionId(sessionId, "sessionId"),
    };
    checkTurnName(turnId, "turnId");
    const read = async (): Promise<Head> => {
      const head = await store.read(key);
      if (!head || !isAlive(head, clock.nowMs())) throw new SessionNotFoundError(sessionId);
      return head;
    };
    // Ends: each refusal shows that the turn went on since it was seen.
    for (let tried = false; ; tried = true) {
      const head = await read();
      // An open turn too may have ended long ago, and be delivered once more.
      if (head.recent.has(turnKey(turnId)) || (await sealedRecord(store, head, turnId))) return;
      if (head.open?.turnId !== turnId) {
        // A refused write may be one's own, and leaves no record of an id of ours.
        if (!tried) await findTurn({ store, read, nowMs: clock.nowMs }, turnId);
        return;
      }
      const displaced = cancelled(head);
      const seen = { key, incarnation: head.incarnation, seen: head, nowMs: clock.nowMs() };
      const { applied } = await store.displace({ ...seen, ...(displaced ? { displaced } : {}) });
      if (applied) return onTaken(head);
    }
  };
