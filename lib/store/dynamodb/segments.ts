/**
 * The older turns of a session.
 *
 * Segments hold committed turns only, and one begins where the tail began. So whoever writes the
 * segment of an incarnation that begins with a turn writes a true piece of its past; the first one
 * stands, and all others adopt it.
 */
import type { DoneTurn } from "../../session/turn.ts";
import { decodeTurns, encodeTurn, reading } from "../codec.ts";
import { DamagedSessionError } from "../errors.ts";
import type { Head, RecentTurn, TailTurn } from "../head.ts";
import { isCallersTurnId, turnKey } from "../keys.ts";
import type { Incarnation, Sealed, TurnRange } from "../store.ts";
import { type Segment, segmentCache } from "./cache.ts";
import * as when from "./conditions.ts";
import { decodeContent } from "./content.ts";
import { Fields } from "./fields.ts";
import { decodeRecent, encodeRecent, encodeTail } from "./item.ts";
import { afterHead, placeOf, segmentKey, segmentsBetween, turnRecordKey } from "./keys.ts";
import type { Numbered, Parts } from "./parts.ts";
import type { Table } from "./requests.ts";
import type { Item } from "./table.ts";
import { TABLE } from "./table.ts";

export interface Segments {
  turns(head: Head, range: TurnRange): Promise<DoneTurn[]>;
  seal(head: Head): Promise<Sealed>;
  findTurn(place: Incarnation, turnKey: string): Promise<RecentTurn | undefined>;
  /** Writes one segment, of turns that begin with number `from`; gives where the one ends that then stands there. */
  write(head: Head, from: number, turns: readonly TailTurn[]): Promise<Sealed>;
  /** By turn key. */
  writeRecords(head: Head, records: ReadonlyMap<string, RecentTurn>): Promise<void>;
  /** @throws {DamagedSessionError} where the segments aren't all there */
  verify(head: Head): Promise<void>;
}

/**
 * Of JSON in HEAD, from which on it is sealed: two turns of 1.9 KB. HEAD is paid for at each claim
 * and commit, a segment once; at this size their sum is the least (see bench/).
 */
const MAX_TAIL_BYTES = 3000;

export interface SegmentsOptions {
  readonly cacheBytes: number;
  /** A smaller one makes more of a history lie in segments. */
  readonly maxTailBytes?: number;
}

/** What a turn's record in HEAD takes, in terms of JSON that would be compressed by half. */
const RECORD_BYTES = 120;

/** DynamoDB sends at most 1 MB a page, and pages come one after the other: longer ranges are read in slices, at once. */
const SLICE_BYTES = 2_000_000;
const MAX_SLICES = 8;

export const dynamoSegments = (
  table: Table,
  parts: Parts,
  { cacheBytes, maxTailBytes = MAX_TAIL_BYTES }: SegmentsOptions,
): Segments => {
  const cache = segmentCache(cacheBytes);

  const turns: Segments["turns"] = async (head, { from, to }) => {
    const sealed = { from, to: Math.min(to, head.tailFrom) };
    const newest = numbered(head.tail, head.tailFrom).filter(
      ({ number }) => number >= from && number < to,
    );
    const [segments, tail] = await Promise.all([
      sealed.from < sealed.to ? segmentsOf(head, sealed) : [],
      parts.whole(head, newest),
    ]);
    const older = segments.flatMap(({ turns }) => turns);
    const first = segments[0]?.from ?? from;
    return [...older.slice(from - first, sealed.to - first), ...tail.map(({ turn }) => turn)];
  };

  /** Those that cover the range, in order and without a gap. */
  const segmentsOf = async (head: Head, range: TurnRange): Promise<Segment[]> => {
    const cached = cache.cover(head.incarnation, range);
    const rest = { from: cached.at(-1)?.to ?? range.from, to: range.to };
    if (rest.from >= rest.to) return cached;
    // Only behind a cached segment, and at the very first turn, one is known to begin.
    const isBoundary = cached.length > 0 || rest.from === 1;
    let items = await readItems(head, rest, { isBoundary, consistent: false });
    // An eventually consistent Query can miss the newest.
    if (gapIn(head, items, rest) !== undefined) {
      items = await readItems(head, rest, { isBoundary, consistent: true });
    }
    const gap = gapIn(head, items, rest);
    if (gap !== undefined) throw missing(head, gap);
    const read = await decode(head, items);
    for (const segment of read) cache.add(head.incarnation, segment);
    return [...cached, ...read];
  };

  const readItems = async (
    head: Head,
    range: TurnRange,
    { isBoundary, consistent }: { readonly isBoundary: boolean; readonly consistent: boolean },
  ): Promise<Item[]> => {
    const slices = slicesOf(head, range).map((slice) =>
      Array.fromAsync(
        table.items({ ...segmentsBetween(placeOf(head), slice), ConsistentRead: consistent }),
      ),
    );
    const inside = isBoundary ? [] : [segmentWith(head, range.from, consistent)];
    const items = (await Promise.all([...inside, ...slices])).flat();
    // A read that isn't consistent may miss the segment that `from` lies in, and bring one before it.
    return items.filter(
      (item, index) =>
        item[TABLE.sortKey] !== items[index - 1]?.[TABLE.sortKey] &&
        rangeOf(head, item).to > range.from,
    );
  };

  /** The segment that a turn lies in: the last that begins with it, or before. */
  const segmentWith = async (head: Head, turn: number, consistent: boolean): Promise<Item[]> => {
    const before = segmentsBetween(placeOf(head), { from: 1, to: turn + 1 });
    const page = await table.query({
      ...before,
      ScanIndexForward: false,
      Limit: 1,
      ConsistentRead: consistent,
    });
    return page.items;
  };

  const decode = async (head: Head, items: readonly Item[]): Promise<Segment[]> => {
    const segments = items.map((item) => decodeSegment(head, item));
    const whole = await parts.whole(
      head,
      segments.flatMap(({ from, turns }) => numbered(turns, from)),
    );
    const left = whole.values();
    return segments.map(({ from, to, bytes, turns }) => {
      const read = Array.from(left.take(turns.length));
      const inParts = read.reduce((sum, { partsBytes }) => sum + partsBytes, 0);
      return { from, to, turns: read.map(({ turn }) => turn), bytes: bytes + inParts };
    });
  };

  const write: Segments["write"] = async (head, from, turns) => {
    const to = from + turns.length;
    const item = {
      ...segmentKey(placeOf(head), from),
      to,
      data: encodeTail(turns),
      expires_at: afterHead(head),
    };
    const put = await table.putIf(item, { condition: [when.NOTHING_THERE] });
    return { to: put.applied ? to : rangeOf(head, put.seen).to };
  };

  const writeRecords: Segments["writeRecords"] = (head, records) =>
    table.putAll(
      Array.from(records, ([key, record]) => ({
        ...turnRecordKey(placeOf(head), key),
        ...encodeRecent(record),
        expires_at: afterHead(head),
      })),
    );

  const seal: Segments["seal"] = async (head) => {
    const bytes = head.tail.reduce((sum, turn) => sum + Buffer.byteLength(encodeTurn(turn)), 0);
    if (bytes + head.tail.length * RECORD_BYTES < maxTailBytes) return { to: head.tailFrom };
    const callers = new Set(
      head.tail
        .map(({ turnId }) => turnId)
        .filter(isCallersTurnId)
        .map(turnKey),
    );
    // A turn that was abandoned is in no tail, and has a record only where its id was a caller's.
    const records = new Map(
      [...head.recent].filter(([key, { outcome }]) => callers.has(key) || outcome === "abandoned"),
    );
    const [sealed] = await Promise.all([
      write(head, head.tailFrom, head.tail),
      writeRecords(head, records),
    ]);
    // One that stands already may end elsewhere than HEAD's tail: beyond it, where the runner was overtaken.
    const isOwn = sealed.to === head.version;
    if (isOwn && head.tail.every((turn) => turn.status === "done")) {
      cache.add(head.incarnation, { from: head.tailFrom, ...sealed, turns: head.tail, bytes });
    }
    return sealed;
  };

  const findTurn: Segments["findTurn"] = async (place, key) => {
    const item = await table.read(turnRecordKey(place, key));
    return (
      item &&
      reading(`session ${place.key.sessionId}, a turn's record`, () =>
        decodeRecent(new Fields(item, "")),
      )
    );
  };

  const verify: Segments["verify"] = async (head) => {
    const range = { from: 1, to: head.tailFrom };
    const gap = gapIn(
      head,
      await readItems(head, range, { isBoundary: true, consistent: true }),
      range,
    );
    if (gap !== undefined) throw missing(head, gap);
  };

  return { turns, seal, findTurn, write, writeRecords, verify };
};

const numbered = (turns: readonly TailTurn[], from: number): Numbered[] =>
  turns.map((turn, index) => ({ turn, number: from + index }));

const decodeSegment = (head: Head, item: Item) => {
  const { from, to } = rangeOf(head, item);
  const where = `session ${head.sessionId}, segment ${from}`;
  const { text, turns } = reading(where, () => {
    const text = decodeContent(item["data"], "data");
    return { text, turns: decodeTurns(text) };
  });
  if (turns.length !== to - from) {
    throw new DamagedSessionError(`${where}: holds ${turns.length} turns in place of ${to - from}`);
  }
  return { from, to, turns, bytes: text.length };
};

const rangeOf = (head: Head, segment: Item | undefined): TurnRange => {
  const from = Number(String(segment?.[TABLE.sortKey]).slice(-8));
  const to = reading(`session ${head.sessionId}, segment ${from}`, () =>
    new Fields(segment, "").number("to"),
  );
  return { from, to };
};

const missing = (head: Head, turn: number): DamagedSessionError =>
  new DamagedSessionError(`session ${head.sessionId}: the segment with turn ${turn} is missing`);

/** The first turn of the range that no segment holds. */
const gapIn = (
  head: Head,
  segments: readonly Item[],
  { from, to }: TurnRange,
): number | undefined => {
  let next = from;
  for (const item of segments) {
    const segment = rangeOf(head, item);
    if (segment.from > next) return next;
    next = Math.max(next, segment.to);
  }
  return next < to ? next : undefined;
};

const slicesOf = (head: Head, { from, to }: TurnRange): TurnRange[] => {
  const bytes = (head.counts.bytes * (to - from)) / Math.max(1, head.tailFrom - 1);
  const count = Math.max(1, Math.min(MAX_SLICES, to - from, Math.ceil(bytes / SLICE_BYTES)));
  const step = Math.ceil((to - from) / count);
  return Array.from({ length: Math.ceil((to - from) / step) }, (_, n) => ({
    from: from + n * step,
    to: Math.min(to, from + (n + 1) * step),
  }));
};
