import { invalid } from "../session/invalid.ts";
import type { Head } from "../store/head.ts";
import type { SessionStore } from "../store/store.ts";
import { decodeOpaque, encodeOpaque, MAX_PAGE_BYTES, type Page, pageBytes } from "./pages.ts";

export interface SessionPageRequest {
  /** 1 to 100; 50 by default. */
  readonly limit?: number;
  /** The `nextCursor` of the page before. */
  readonly cursor?: string;
}

export const MAX_LIST_LIMIT = 100;
const DEFAULT_LIST_LIMIT = 50;

/**
 * One page of an owner's sessions, newest first.
 *
 * @throws {InvalidInputError} for a cursor that is none of this list's
 */
export const pageOfSessions = async (
  store: SessionStore,
  owner: string,
  { limit = DEFAULT_LIST_LIMIT, cursor, nowMs }: SessionPageRequest & { readonly nowMs: number },
): Promise<Page<Head>> => {
  const after = cursor === undefined ? {} : { after: decodePlace(cursor) };
  // A page whose metadata are too large for an answer is asked for again, half as long.
  for (let count = limit; ; count = Math.ceil(count / 2)) {
    const { heads, next } = await store.list({ owner, limit: count, nowMs, ...after });
    if (heads.length > 1 && listBytes(heads) > MAX_PAGE_BYTES) continue;
    return { data: heads, ...(next === undefined ? {} : { nextCursor: encodeOpaque([next]) }) };
  }
};

/** A place in the list is short and plain: what isn't, a store may choke on. */
const decodePlace = (cursor: string): string => {
  const [place, ...others] = decodeOpaque(cursor);
  if (typeof place !== "string" || !/^[\x21-\x7e]{1,200}$/.test(place) || others.length > 0) {
    throw invalid("cursor", "must be the next_cursor of a page of this list");
  }
  return place;
};

const listBytes = (heads: readonly Head[]): number =>
  heads.reduce(
    (sum, { metadata, open }) => sum + pageBytes([metadata, open]) + PLAIN_HEAD_BYTES,
    0,
  );

/** Of a HEAD's other fields, at most. */
const PLAIN_HEAD_BYTES = 1000;
