import { checkSessionId } from "../session/session.ts";
import { checkOwner, isCallersTurnId, turnKey } from "../store/keys.ts";
import { isAlive, type SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { cancelled } from "./displaced.ts";
import { SessionNotFoundError, TurnNotFoundError } from "./errors.ts";
import { checkTurnName } from "./request.ts";

export interface NamedTurn {
  readonly owner: string;
  readonly sessionId: string;
  readonly turnId: string;
}

export const canceller =
  ({ store, clock }: { readonly store: SessionStore; readonly clock: Clock }) =>
  async ({ owner, sessionId, turnId }: NamedTurn): Promise<void> => {
    const key = {
      owner: checkOwner(owner, "owner"),
      sessionId: checkSessionId(sessionId, "sessionId"),
    };
    checkTurnName(turnId, "turnId");
    // Ends: each refusal shows that the turn went on since it was seen.
    for (let tried = false; ; tried = true) {
      const head = await store.read(key);
      const nowMs = clock.nowMs();
      if (!head || !isAlive(head, nowMs)) throw new SessionNotFoundError(sessionId);
      if (head.recent.has(turnKey(turnId))) return;
      const { incarnation } = head;
      if (head.open?.turnId !== turnId) {
        // A refused write may be one's own, and leaves no record of an id of ours.
        if (tried) return;
        const isKnown =
          isCallersTurnId(turnId) &&
          (await store.findTurn({ key, incarnation }, turnKey(turnId))) !== undefined;
        if (isKnown) return;
        throw new TurnNotFoundError(turnId);
      }
      const displaced = cancelled(head);
      const write = { key, incarnation, seen: head, nowMs, ...(displaced ? { displaced } : {}) };
      if ((await store.displace(write)).applied) return;
    }
  };
