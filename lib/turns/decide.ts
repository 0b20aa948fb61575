/**
 * What a refused claim means. Decided from what stands in the store and nothing else, in the order
 * of the protocol: is there a session; was the turn done; is the claim our own after all; does the
 * version match; is somebody at work. What is left is a turn that nobody runs any more.
 */
import { type Claim, type Head, isAlive, matches, type RecentTurn } from "../store/store.ts";

export type Decision =
  | { readonly kind: "absent" }
  | { readonly kind: "done"; readonly head: Head; readonly turn: RecentTurn }
  | { readonly kind: "reused" }
  | { readonly kind: "mine"; readonly head: Head }
  | { readonly kind: "mismatch"; readonly head: Head }
  | { readonly kind: "in_progress"; readonly untilMs: number }
  | { readonly kind: "busy"; readonly untilMs: number }
  | { readonly kind: "abandoned"; readonly head: Head };

export const decide = (seen: Head | undefined, wanted: Claim): Decision => {
  if (!seen || !isAlive(seen, wanted.nowMs)) return { kind: "absent" };

  const done = seen.recent.get(wanted.turnKey);
  if (done && done.requestHash !== wanted.open.requestHash) return { kind: "reused" };
  if (done) return { kind: "done", head: seen, turn: done };

  const { claim, open } = seen;
  if (claim?.attempt === wanted.claim.attempt) return { kind: "mine", head: seen };
  if (wanted.ifMatch && !matches(seen, wanted.ifMatch)) return { kind: "mismatch", head: seen };
  if (claim && claim.untilMs > wanted.nowMs) {
    const kind = claim.turnId === wanted.open.turnId ? "in_progress" : "busy";
    return { kind, untilMs: claim.untilMs };
  }
  // Its tools may have run already, and would run again for the other input under the same name.
  if (open?.turnId === wanted.open.turnId && open.requestHash !== wanted.open.requestHash) {
    return { kind: "reused" };
  }
  return { kind: "abandoned", head: seen };
};
