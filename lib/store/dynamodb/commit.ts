import type { DoneTurn } from "../../session/turn.ts";
import { countsWith, supersededWith } from "../counts.ts";
import type { Counts, Head } from "../head.ts";
import type { Commit, Held, Sealed } from "../store.ts";
import * as when from "./conditions.ts";
import type { Change } from "./expressions.ts";
import { bytes, encodeRecent, encodeTail, encodeTimestamp } from "./item.ts";
import type { Parts } from "./parts.ts";
import type { Item } from "./table.ts";

/** Of a turn's content in HEAD: a larger one would be paid for at each claim and commit while it is in the tail. */
const MAX_INLINE_BYTES = 2048;

export const commitChange = async (parts: Parts, commit: Commit): Promise<Change> => {
  const { head, turn, turnKey, requestHash, sealed, supersedes, attempt } = commit;
  const counts = countsWith(head, turn, supersedes);
  const appended = await append(parts, { head, turn, attempt, sealed, counts });
  return {
    set: [
      ...appended.set,
      "#recent.#turn_key = :recent",
      ...(supersedes ? ["#superseded = :superseded"] : []),
    ],
    remove: ["#claim", "#open", ...appended.remove],
    condition: [when.SAME_INCARNATION, when.HELD, when.VERSION_UNCHANGED, when.NOT_EXPIRED],
    values: {
      ...heldValues(commit),
      ...appended.values,
      now: Math.floor(commit.nowMs / 1000),
      one: 1,
      recent: encodeRecent({ attempt, version: head.version, requestHash, outcome: "done" }),
      superseded: supersedes && supersededWith(head, supersedes),
    },
    names: { ...OPEN_NAMES, ...appended.names, turn_key: turnKey },
  };
};

/** Appends a turn to the tail, and drops from HEAD what is sealed. A turn too large for HEAD is written into parts first. */
export const append = async (
  parts: Parts,
  {
    head,
    turn,
    attempt,
    sealed,
    counts,
  }: {
    readonly head: Head;
    readonly turn: DoneTurn;
    readonly attempt: string;
    readonly sealed: Sealed | undefined;
    readonly counts: Counts;
  },
): Promise<Required<Omit<Change, "condition">>> => {
  const { version: number } = head;
  const from = sealed?.to ?? head.tailFrom;
  const dropped = [...head.recent].filter(([, { version }]) => version < from).map(([key]) => key);
  const placed = await parts.place(head, turn, { number, attempt, maxBytes: MAX_INLINE_BYTES });
  return {
    set: [
      "#version = #version + :one",
      "#tail = :tail",
      "#tail_from = :tail_from",
      "#updated_at = :updated_at",
      "#message_count = :message_count",
      "#turn_count = :turn_count",
      "#size_bytes = :size_bytes",
    ],
    remove: dropped.map((_, n) => `#recent.#dropped_${n}`),
    values: {
      version: number,
      tail_from: from,
      tail: encodeTail([...head.tail.slice(from - head.tailFrom), placed]),
      updated_at: encodeTimestamp(turn.finishedAt),
      message_count: counts.messages,
      turn_count: counts.turns,
      size_bytes: counts.bytes,
    },
    names: Object.fromEntries(dropped.map((key, n) => [`dropped_${n}`, key])),
  };
};

/** As `encodeClaim` and `encodeOpen` spell them. */
export const OPEN_NAMES = {
  attempt: "a",
  until_ms: "u",
  turn_id: "t",
  request_hash: "h",
  steps: "k",
  results: "x",
  revision: "r",
};

export const heldValues = ({ incarnation, fence, attempt }: Omit<Held, "key">): Item => ({
  incarnation: bytes(incarnation),
  fence,
  attempt: bytes(attempt),
});
