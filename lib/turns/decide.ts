/**
 * What a refused claim means. Decided from what stands in the store and nothing else, in the order
 * of the protocol: is there a session; did the turn end; is the claim our own after all; does the
 * version match; is somebody at work. What is left is a session that nobody works on any more.
 */
import { type Head, isAlive, matches, type RecentTurn } from "../store/head.ts";
import type { Claim } from "../store/store.ts";

export type Decision =
  | { readonly kind: "absent" }
  | { readonly kind: "ended"; readonly head: Head; readonly turn: RecentTurn }
  | { readonly kind: "reused" }
  /** With another input: of a turn of long ago it may be this one that is right. */
  | { readonly kind: "open otherwise"; readonly head: Head }
  | { readonly kind: "mine"; readonly head: Head }
  | { readonly kind: "mismatch"; readonly head: Head }
  /** By the very same turn, or by another. */
  | { readonly kind: "busy"; readonly head: Head; readonly untilMs: number; readonly same: boolean }
  /** Nothing but a plain claim is needed. */
  | { readonly kind: "free"; readonly head: Head }
  | { readonly kind: "left"; readonly head: Head };

export const decide = (seen: Head | undefined, wanted: Claim): Decision => {
  if (!seen || !isAlive(seen, wanted.nowMs)) return { kind: "absent" };

  const ended = seen.recent.get(wanted.turnKey);
  if (ended && ended.requestHash !== wanted.open.requestHash) return { kind: "reused" };
  if (ended) return { kind: "ended", head: seen, turn: ended };

  const { claim, open } = seen;
  if (claim?.attempt === wanted.claim.attempt) return { kind: "mine", head: seen };
  // Its tools may have run already, and would run again for the other input under the same name.
  const isSame = open?.turnId === wanted.open.turnId;
  if (isSame && open.requestHash !== wanted.open.requestHash)
    return { kind: "open otherwise", head: seen };
  if (wanted.ifMatch && !matches(seen, wanted.ifMatch)) return { kind: "mismatch", head: seen };
  if (claim && claim.untilMs > wanted.nowMs) {
    const same = claim.turnId === wanted.open.turnId;
    return { kind: "busy", head: seen, untilMs: claim.untilMs, same };
  }
  return { kind: claim || (open && !isSame) ? "left" : "free", head: seen };
};
