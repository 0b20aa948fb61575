/** What a turn that loses its place leaves behind, and the conditions that nothing of it is lost unseen. */
import { encodeTurn } from "../codec.ts";
import { countsWith } from "../counts.ts";
import type { Head } from "../head.ts";
import { hash } from "../keys.ts";
import type { Displaced } from "../store.ts";
import { append } from "./commit.ts";
import * as when from "./conditions.ts";
import type { Change } from "./expressions.ts";
import { bytes, encodeRecent } from "./item.ts";
import type { Parts } from "./parts.ts";
import type { Item } from "./table.ts";

/** The session stands as it was seen: the same claim, the same open turn, with nothing more done. */
export const asSeen = (seen: Head): string[] => [
  when.SAME_INCARNATION,
  when.FENCE_AS_SEEN,
  seen.claim ? when.CLAIM_AS_SEEN : when.NO_CLAIM_AS_SEEN,
  seen.open ? when.OPEN_AS_SEEN : when.NO_OPEN_AS_SEEN,
];

export const seenValues = ({ incarnation, fence, claim, open }: Head): Item => ({
  incarnation: bytes(incarnation),
  seen_fence: fence,
  ...(claim ? { seen_attempt: bytes(claim.attempt), seen_until_ms: claim.untilMs } : {}),
  ...(open ? { seen_turn_id: open.turnId, seen_revision: open.revision } : {}),
});

export const displacedChange = async (
  parts: Parts,
  seen: Head,
  displaced: Displaced | undefined,
): Promise<Required<Change>> => {
  if (!displaced) return { set: [], remove: [], condition: [], values: {}, names: {} };
  const { interrupted: turn, sealed, turnKey, record } = displaced;
  const appended =
    turn &&
    (await append(parts, {
      head: seen,
      turn,
      // Tried again, it may hold more, and one attempt must not write two turns under one name.
      attempt: hash(encodeTurn(turn)),
      sealed,
      counts: countsWith(seen, turn),
    }));
  return {
    set: ["#recent.#displaced_key = :displaced", ...(appended?.set ?? [])],
    remove: appended?.remove ?? [],
    condition: appended ? [when.VERSION_UNCHANGED] : [],
    values: { displaced: encodeRecent(record), ...appended?.values },
    names: { displaced_key: turnKey, ...appended?.names },
  };
};
