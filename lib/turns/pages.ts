/** Pages of a session's history, bounded by count and by bytes, oldest or newest first. */
import { invalid } from "../session/invalid.ts";
import { parseJson } from "../session/json.ts";
import { type MessageJson, messageToJson } from "../session/message.ts";
import type { DoneTurn } from "../session/turn.ts";
import type { Head } from "../store/head.ts";
import type { SessionStore } from "../store/store.ts";
import { readTurns } from "./history.ts";

export interface PageRequest {
  /** 1 to 1000; 100 by default. */
  readonly limit?: number;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string;
  /** "asc" (oldest first) by default. */
  readonly order?: Order;
}

export type Order = "asc" | "desc";

export interface Page<T> {
  readonly data: readonly T[];
  /** Opaque; absent on the last page. What comes meanwhile doesn't move it. */
  readonly nextCursor?: string;
}

export const MAX_PAGE_LIMIT = 1000;
const DEFAULT_PAGE_LIMIT = 100;

/** Of a page's JSON, escaped once more as it is in a function's answer. */
export const MAX_PAGE_BYTES = 5_000_000;

/** A turn of the history, in JSON. */
export interface TurnJson {
  readonly turn_id: string;
  readonly status: "done";
  /** Of the session, with this turn in it. */
  readonly version: number;
  readonly started_at: string;
  readonly finished_at: string;
  readonly finish: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  /** The turn whose place this one took; null mostly. */
  readonly supersedes: string | null;
  /** Whether a later turn took its place. */
  readonly superseded: boolean;
  /** None where they are too large for a page (`truncated`): the messages' own pages have them. */
  readonly messages: readonly MessageJson[];
  readonly truncated?: true;
}

/** A message whose content is too large for a page is cut, and says so. */
export type PagedMessage = MessageJson & { readonly truncated?: true };

interface Reading {
  readonly store: SessionStore;
  readonly head: Head;
  readonly nowMs: number;
}

/** @throws {InvalidInputError} for a cursor that isn't of this session and order */
export const pageOfMessages = (
  reading: Reading,
  request: PageRequest = {},
): Promise<Page<PagedMessage>> =>
  page(reading, request, ({ turn, number }) => {
    const isSuperseded = reading.head.superseded.includes(number);
    return turn.messages.flatMap((message, index) =>
      // A superseded turn's system prompt is still the session's.
      isSuperseded && message.role !== "system"
        ? []
        : [{ index, item: () => fitting(messageToJson(message)) }],
    );
  });

/** @throws {InvalidInputError} for a cursor that isn't of this session and order */
export const pageOfTurns = (reading: Reading, request: PageRequest = {}): Promise<Page<TurnJson>> =>
  page(reading, request, ({ turn, number }) => [
    { index: 0, item: () => turnToJson(turn, number, reading.head) },
  ]);

interface Numbered {
  readonly turn: DoneTurn;
  readonly number: number;
}

interface Placed<T> {
  /** In its turn. */
  readonly index: number;
  /** Made when it is needed: only what goes into the page is worth its work. */
  readonly item: () => T;
}

/** An item's place is the number of its turn and its index there: history only grows, so it stays what it is. */
const page = async <T>(
  reading: Reading,
  { limit = DEFAULT_PAGE_LIMIT, order = "asc", cursor }: PageRequest,
  itemsOf: (turn: Numbered) => readonly Placed<T>[],
): Promise<Page<T>> => {
  const { head } = reading;
  const start = cursor === undefined ? undefined : decodeCursor(cursor, head, order);
  const data: T[] = [];
  let bytes = 0;
  for await (const turn of turnsFrom(reading, order, { limit, start: start?.turn })) {
    const items = order === "asc" ? itemsOf(turn) : itemsOf(turn).toReversed();
    for (const { index, item } of items) {
      if (
        turn.number === start?.turn &&
        (order === "asc" ? index < start.index : index > start.index)
      )
        continue;
      const endBefore = () => ({
        data,
        nextCursor: encodeCursor({ turn: turn.number, index }, head, order),
      });
      if (data.length === limit) return endBefore();
      const next = item();
      bytes += pageBytes(next);
      if (data.length > 0 && bytes > MAX_PAGE_BYTES) return endBefore();
      data.push(next);
    }
  }
  return { data };
};

/** Turns one by one, from number `start` or the end on, read in stretches that hold about a page. */
export async function* turnsFrom(
  { store, head, nowMs }: Reading,
  order: Order,
  { limit, start }: { readonly limit: number; readonly start: number | undefined },
): AsyncGenerator<Numbered> {
  const { counts, version } = head;
  const turnBytes = counts.bytes / Math.max(1, counts.turns);
  const stretch = Math.max(
    1,
    Math.min(limit + 1, Math.floor(MAX_PAGE_BYTES / Math.max(1, turnBytes))),
  );
  let next = start ?? (order === "asc" ? 1 : version - 1);
  while (next >= 1 && next < version) {
    const range =
      order === "asc"
        ? { from: next, to: Math.min(version, next + stretch) }
        : { from: Math.max(1, next - stretch + 1), to: next + 1 };
    const turns = await readTurns(store, head, { range, nowMs });
    const numbered = turns.map((turn, n) => ({ turn, number: range.from + n }));
    yield* order === "asc" ? numbered : numbered.toReversed();
    next = order === "asc" ? range.to : range.from - 1;
  }
}

/** Of a value's JSON, escaped once more as it is in a function's answer. */
export const pageBytes = (item: unknown): number =>
  Buffer.byteLength(JSON.stringify(JSON.stringify(item)));

const fitting = (message: MessageJson): PagedMessage => {
  if (pageBytes(message) <= MAX_PAGE_BYTES) return message;
  const { role, content, tool_call_id } = message;
  return {
    role,
    content: cutText(content, MAX_PAGE_BYTES - 2 * MAX_CUT_ID_BYTES),
    tool_calls: [],
    tool_call_id: tool_call_id && cutText(tool_call_id, MAX_CUT_ID_BYTES),
    truncated: true,
  };
};

const MAX_CUT_ID_BYTES = 50_000;

/** The beginning of a text, of at most so many `pageBytes`; never cut through a character. */
export const cutText = (text: string, maxBytes: number): string => {
  // A character takes a byte at least.
  let cut = text.slice(0, maxBytes);
  // Again and again, since what is left may take more bytes a character than the whole did.
  for (let bytes = pageBytes(cut); bytes > maxBytes && cut !== ""; bytes = pageBytes(cut)) {
    cut = cut.slice(0, Math.floor((cut.length * maxBytes) / bytes));
  }
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
};

const turnToJson = (turn: DoneTurn, number: number, head: Head): TurnJson => {
  const whole = wholeTurn(turn, number, head);
  return pageBytes(whole) <= MAX_PAGE_BYTES ? whole : { ...whole, messages: [], truncated: true };
};

const wholeTurn = (turn: DoneTurn, number: number, head: Head): TurnJson => ({
  turn_id: turn.turnId,
  status: turn.status,
  version: number + 1,
  started_at: turn.startedAt,
  finished_at: turn.finishedAt,
  finish: turn.finish,
  usage: { input_tokens: turn.usage.inputTokens, output_tokens: turn.usage.outputTokens },
  supersedes: turn.supersedes ?? null,
  superseded: head.superseded.includes(number),
  messages: turn.messages.map(messageToJson),
});

interface Place {
  readonly turn: number;
  readonly index: number;
}

/** Names the session's life too: a cursor is of no use in a namesake. */
const encodeCursor = ({ turn, index }: Place, head: Head, order: Order): string =>
  encodeOpaque([head.incarnation.slice(0, 8), order, turn, index]);

const decodeCursor = (cursor: string, head: Head, order: Order): Place => {
  const [incarnation, itsOrder, turn, index] = decodeOpaque(cursor);
  const belongs = incarnation === head.incarnation.slice(0, 8) && itsOrder === order;
  if (!belongs || !isPlace(turn) || !isPlace(index)) {
    throw invalid("cursor", "must be the next_cursor of a page of this session in the same order");
  }
  return { turn, index };
};

const isPlace = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;

export const encodeOpaque = (values: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(values)).toString("base64url");

/** Empty for what isn't a cursor at all. */
export const decodeOpaque = (cursor: string): readonly unknown[] => {
  try {
    const value = parseJson(Buffer.from(cursor, "base64url").toString());
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
};
