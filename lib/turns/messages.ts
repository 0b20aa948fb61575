import { invalid } from "../session/invalid.ts";
import { type MessageJson, messageToJson } from "../session/message.ts";
import { visibleTurns } from "../session/turn.ts";
import type { Head } from "../store/store.ts";

export interface PageRequest {
  /** 1 to 1000. */
  readonly limit?: number;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string;
  /** "asc" (oldest first) by default. */
  readonly order?: "asc" | "desc";
}

export interface Page<T> {
  readonly data: readonly T[];
  /** Opaque; absent on the last page. Messages that come meanwhile don't move it. */
  readonly nextCursor?: string;
}

export const MAX_PAGE_LIMIT = 1000;
const DEFAULT_PAGE_LIMIT = 100;

/**
 * Of a page's JSON, escaped once more: as text inside a Lambda's answer, whose own limit is 6 MB.
 * One message larger than this still makes a page of its own.
 */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/**
 * One page of a session's messages, bounded by count and by bytes.
 *
 * A message's place is the number of its turn and its index there: history only grows, so a place
 * stays what it is.
 *
 * @throws {InvalidInputError} for a cursor that isn't of this session and order
 */
export const pageOfMessages = (head: Head, request: PageRequest = {}): Page<MessageJson> => {
  const { limit = DEFAULT_PAGE_LIMIT, order = "asc" } = request;
  const start =
    request.cursor === undefined ? undefined : decodeCursor(request.cursor, head, order);
  const placed = visibleTurns(head.tail).flatMap(({ messages }, turn) =>
    messages.map((message, index) => ({ message, place: { turn: head.tailFrom + turn, index } })),
  );
  if (order === "desc") placed.reverse();
  const from = start
    ? placed.findIndex(({ place }) =>
        order === "asc" ? isBefore(start, place) : isBefore(place, start),
      )
    : 0;

  const data: MessageJson[] = [];
  let bytes = 0;
  for (const { message, place } of from < 0 ? [] : placed.slice(from)) {
    const item = messageToJson(message);
    bytes += Buffer.byteLength(JSON.stringify(JSON.stringify(item)));
    if (data.length === limit || (data.length > 0 && bytes > MAX_PAGE_BYTES)) {
      return { data, nextCursor: encodeCursor(place, head, order) };
    }
    data.push(item);
  }
  return { data };
};

interface Place {
  readonly turn: number;
  readonly index: number;
}

/** Or the same. */
const isBefore = (a: Place, b: Place): boolean =>
  a.turn < b.turn || (a.turn === b.turn && a.index <= b.index);

/** Names the session's life too: a cursor is of no use in a namesake. */
const encodeCursor = ({ turn, index }: Place, head: Head, order: string): string =>
  Buffer.from(JSON.stringify([head.incarnation.slice(0, 8), order, turn, index])).toString(
    "base64url",
  );

const decodeCursor = (cursor: string, head: Head, order: string): Place => {
  const [incarnation, itsOrder, turn, index] = parseArray(
    Buffer.from(cursor, "base64url").toString(),
  );
  const belongs = incarnation === head.incarnation.slice(0, 8) && itsOrder === order;
  if (!belongs || typeof turn !== "number" || typeof index !== "number") {
    throw invalid("cursor", "must be the next_cursor of a page of this session in the same order");
  }
  return { turn, index };
};

const parseArray = (text: string): unknown[] => {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
};
