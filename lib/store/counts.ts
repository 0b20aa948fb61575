/** How a HEAD's figures go on with one more turn: the same in every store. */
import type { DoneTurn } from "../session/turn.ts";
import { encodeTurn } from "./codec.ts";
import type { Counts, Head } from "./head.ts";
import type { Commit } from "./store.ts";

/** UTF-8 bytes of the turns as JSON. */
export const turnBytes = (...turns: readonly DoneTurn[]): number =>
  turns.reduce((sum, turn) => sum + Buffer.byteLength(encodeTurn(turn)), 0);

export const countsWith = (
  { counts }: Pick<Head, "counts">,
  turn: DoneTurn,
  supersedes?: Commit["supersedes"],
): Counts => ({
  messages: counts.messages + turn.messages.length - (supersedes?.messages ?? 0),
  turns: counts.turns + 1,
  bytes: counts.bytes + turnBytes(turn),
});

export const supersededWith = (
  { superseded }: Head,
  { number }: NonNullable<Commit["supersedes"]>,
): readonly number[] => [...superseded, number].toSorted((a, b) => a - b);
