/**
 * Turns that are too large for HEAD: their JSON, cut by bytes into items of their own. Those are
 * written before the commit that names them, and carry the attempt, so that no other can write them.
 */
import { invalid } from "../../session/invalid.ts";
import type { DoneTurn } from "../../session/turn.ts";
import { decodeTurns, encodeTurn, reading } from "../codec.ts";
import { DamagedSessionError } from "../errors.ts";
import type { Head, TailTurn, TurnInParts } from "../head.ts";
import { byteCache } from "./cache.ts";
import { contentBytes, decodeContent, encodeContent } from "./content.ts";
import { afterHead, partKey, partsBetween, placeOf } from "./keys.ts";
import { readPiece, split, writePieces } from "./pieces.ts";
import type { Table } from "./requests.ts";
import { TABLE } from "./table.ts";

export interface Numbered {
  readonly turn: TailTurn;
  readonly number: number;
}

export interface WholeTurn {
  readonly turn: DoneTurn;
  /** Of its JSON, where that doesn't stand in the item that names the turn. */
  readonly partsBytes: number;
}

export interface Parts {
  /** A turn as a tail or a segment takes it: whole, or, where its content is larger than `maxBytes`, in parts. */
  place(
    head: Head,
    turn: DoneTurn,
    at: { readonly number: number; readonly attempt: string; readonly maxBytes: number },
  ): Promise<TailTurn>;
  /** @throws {DamagedSessionError} where a part is missing or can't be read */
  whole(head: Head, turns: readonly Numbered[]): Promise<WholeTurn[]>;
}

/** More parts than this are read by range. */
const MAX_SINGLE_READS = 8;

/** At once; each is a chain of pages. */
const MAX_RANGES = 8;

export const dynamoParts = (table: Table, cacheBytes: number): Parts => {
  /** By attempt and number: the content never changes. */
  const cache = byteCache<WholeTurn>(cacheBytes);

  const place: Parts["place"] = async (head, turn, { number, attempt, maxBytes }) => {
    const json = encodeTurn(turn);
    if (Buffer.byteLength(json) + 2 <= maxBytes) return turn;
    const content = encodeContent(`[${json}]`);
    if (contentBytes(content) <= maxBytes) return turn;
    const pieces = split(content);
    const placed: TurnInParts = {
      status: "in_parts",
      turnId: turn.turnId,
      attempt,
      count: pieces.length,
    };
    await writePieces(table, pieces, {
      keyOf: (index) => partKey(placeOf(head), { number, attempt, index }),
      expiresAt: afterHead(head),
    });
    cache.add(cacheKey(placed, number), { turn, partsBytes: json.length }, json.length);
    return placed;
  };

  const whole: Parts["whole"] = async (head, turns) => {
    const found = turns.map(({ turn, number }) =>
      turn.status === "done"
        ? { turn, partsBytes: 0 }
        : (cache.get(cacheKey(turn, number)) ?? { turn, number }),
    );
    if (found.every(isWhole)) return found;
    const data = await readData(
      head,
      found.filter((it): it is NumberedParts => !isWhole(it)),
    );
    return Promise.all(
      found.map(async (it) => (isWhole(it) ? it : join(head, it.turn, { ...it, data }))),
    );
  };

  const join = async (
    head: Head,
    turn: TurnInParts,
    { number, data }: { readonly number: number; readonly data: ReadonlyMap<string, Uint8Array> },
  ): Promise<WholeTurn> => {
    const indexes = Array.from({ length: turn.count }, (_, index) => index);
    const pieces = await Promise.all(
      indexes.map(async (index) => {
        const key = partKey(placeOf(head), { number, attempt: turn.attempt, index });
        return data.get(String(key[TABLE.sortKey])) ?? readPart(head, turn, key);
      }),
    );
    const where = `session ${head.sessionId}, turn ${turn.turnId}`;
    const read = reading(where, () => {
      const text = decodeContent(Buffer.concat(pieces), "parts");
      const [done] = decodeTurns(text);
      if (done?.status !== "done") throw invalid("parts", "hold no turn");
      return { turn: done, partsBytes: text.length };
    });
    cache.add(cacheKey(turn, number), read, read.partsBytes);
    return read;
  };

  /** By sort key. Few parts are read one by one, where they are joined. */
  const readData = async (
    head: Head,
    turns: readonly NumberedParts[],
  ): Promise<ReadonlyMap<string, Uint8Array>> => {
    const data = new Map<string, Uint8Array>();
    if (turns.reduce((sum, { turn }) => sum + turn.count, 0) <= MAX_SINGLE_READS) return data;
    const step = Math.ceil(turns.length / MAX_RANGES);
    const ranges = Array.from({ length: Math.ceil(turns.length / step) }, (_, n) =>
      turns.slice(n * step, (n + 1) * step),
    );
    const read = async (range: readonly NumberedParts[]): Promise<void> => {
      const [first, last] = [range[0], range.at(-1)];
      if (!first || !last) return;
      for await (const item of table.items(
        partsBetween(placeOf(head), first.number, last.number),
      )) {
        if (item["data"] instanceof Uint8Array) data.set(String(item[TABLE.sortKey]), item["data"]);
      }
    };
    await Promise.all(ranges.map(read));
    return data;
  };

  const readPart = async (
    head: Head,
    turn: TurnInParts,
    key: ReturnType<typeof partKey>,
  ): Promise<Uint8Array> => {
    const piece = await readPiece(table, key);
    if (piece) return piece;
    throw new DamagedSessionError(
      `session ${head.sessionId}, turn ${turn.turnId}: a part of it is missing`,
    );
  };

  return { place, whole };
};

const isWhole = (it: WholeTurn | NumberedParts): it is WholeTurn => "partsBytes" in it;

interface NumberedParts {
  readonly turn: TurnInParts;
  readonly number: number;
}

/** An attempt makes one turn, but a copy of a history names its turns by number alone. */
const cacheKey = ({ attempt }: TurnInParts, number: number): string => `${attempt}#${number}`;
