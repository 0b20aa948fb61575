import type { DoneTurn } from "../../session/turn.ts";
import { encodeTurn } from "../codec.ts";
import type { Head, TailTurn } from "../head.ts";
import type { Prepared } from "../store.ts";
import { inParallel } from "./parallel.ts";
import type { Parts } from "./parts.ts";
import type { Segments } from "./segments.ts";

/** Of JSON, in a segment that is written at once with others. */
const SEGMENT_BYTES = 32_000;

/** A history of less JSON than this stays in HEAD. */
const MAX_TAIL_BYTES = 2000;

/** A segment isn't paid for again, as HEAD is: it takes larger turns whole. */
const MAX_INLINE_BYTES = 100_000;

const WRITES_AT_ONCE = 4;

/**
 * Writes the history of a session that isn't created yet, and gives the HEAD that names it. Every
 * item carries the new incarnation, so that nothing of it counts before that HEAD is there.
 */
export const prepare = async (
  { segments, parts }: { readonly segments: Segments; readonly parts: Parts },
  head: Head,
  { turns, records }: Prepared,
): Promise<Head> => {
  const json = turns.map(encodeTurn);
  const counts = { ...head.counts, turns: turns.length, bytes: Buffer.byteLength(json.join("")) };
  const version = turns.length + 1;
  if (counts.bytes <= MAX_TAIL_BYTES)
    return { ...head, version, counts, tail: turns, recent: records };

  await inParallel(cut(turns, json), WRITES_AT_ONCE, async ({ from, turns }) => {
    const entries: TailTurn[] = [];
    for (const [n, turn] of turns.entries()) {
      // Nobody else writes in this incarnation: its own name will do for the attempt.
      const at = { number: from + n, attempt: head.incarnation, maxBytes: MAX_INLINE_BYTES };
      entries.push(await parts.place(head, turn, at));
    }
    await segments.write(head, from, entries);
  });
  await segments.writeRecords(head, records);
  const prepared = { ...head, version, counts, tailFrom: version };
  await segments.verify(prepared);
  return prepared;
};

const cut = (turns: readonly DoneTurn[], json: readonly string[]) => {
  const segments: { readonly from: number; readonly turns: DoneTurn[] }[] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const [n, turn] of turns.entries()) {
    bytes += json[n]?.length ?? 0;
    if (bytes > SEGMENT_BYTES) {
      segments.push({ from: n + 1, turns: [] });
      bytes = json[n]?.length ?? 0;
    }
    segments.at(-1)?.turns.push(turn);
  }
  return segments;
};
