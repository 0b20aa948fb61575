/**
 * The keys of a session's items. All lie in one partition. HEAD is the only one that changes; the
 * others carry the incarnation, so that a recreated session never meets those of its namesake.
 */

import type { Head, SessionKey } from "../head.ts";
import { partitionKey } from "../keys.ts";
import type { Incarnation, TurnRange } from "../store.ts";
import type { Item } from "./table.ts";
import { AFTER_HEAD_SECONDS, TABLE } from "./table.ts";

export const HEAD = "HEAD";

export const headKey = (key: SessionKey): Item => itemKey(key, HEAD);

/** A segment is found under the number of its first turn. */
export const segmentKey = (place: Incarnation, from: number): Item =>
  itemKey(place.key, segmentSortKey(place, from));

/** Those that begin in the range. */
export const segmentsBetween = (place: Incarnation, { from, to }: TurnRange) =>
  between(place.key, segmentSortKey(place, from), segmentSortKey(place, to - 1));

/** The record of a turn that left HEAD. */
export const turnRecordKey = (place: Incarnation, turnKey: string): Item =>
  itemKey(place.key, `T#${short(place.incarnation)}#${turnKey}`);

/** One part of a turn that is too large for HEAD. */
export const partKey = (
  place: Incarnation,
  {
    number,
    attempt,
    index,
  }: { readonly number: number; readonly attempt: string; readonly index: number },
): Item =>
  itemKey(
    place.key,
    `${partSortKey(place, number)}#${short(attempt)}#${String(index).padStart(4, "0")}`,
  );

/** All parts of the turns from `first` to `last`, of lost attempts too. */
export const partsBetween = (place: Incarnation, first: number, last: number) =>
  between(place.key, partSortKey(place, first), `${partSortKey(place, last)}#~`);

/** One piece of something of an open turn: of its input, of a step, of results. */
export const openPartKey = (
  place: Incarnation,
  {
    number,
    name,
    index,
  }: { readonly number: number; readonly name: string; readonly index: number },
): Item =>
  itemKey(
    place.key,
    `O#${short(place.incarnation)}#${padded(number)}#${name}#${String(index).padStart(4, "0")}`,
  );

/** What stands for the turns before `to` where they aren't shown. */
export const summaryKey = (place: Incarnation, to: number): Item =>
  itemKey(place.key, summarySortKey(place, to));

/** Those that cover no more than the turns before `to`. */
export const summariesBefore = (place: Incarnation, to: number) =>
  between(place.key, summarySortKey(place, 0), summarySortKey(place, to));

/** Begins the sort keys of everything that belongs to an incarnation but its HEAD. */
export const sortKeyPrefixes = (incarnation: string): readonly string[] =>
  ["S", "T", "P", "O", "C"].map((kind) => `${kind}#${short(incarnation)}#`);

export const placeOf = ({ owner, sessionId, incarnation }: Head): Incarnation => ({
  key: { owner, sessionId },
  incarnation,
});

/** When an item that belongs to HEAD expires. */
export const afterHead = (head: Head): number => head.expiresAtSeconds + AFTER_HEAD_SECONDS;

const segmentSortKey = ({ incarnation }: Incarnation, from: number): string =>
  `S#${short(incarnation)}#${padded(from)}`;

const summarySortKey = ({ incarnation }: Incarnation, to: number): string =>
  `C#${short(incarnation)}#${padded(to)}`;

const partSortKey = ({ incarnation }: Incarnation, turn: number): string =>
  `P#${short(incarnation)}#${padded(turn)}`;

const between = (key: SessionKey, from: string, to: string) => ({
  KeyConditionExpression: "#pk = :pk AND #sk BETWEEN :from AND :to",
  ExpressionAttributeNames: { "#pk": TABLE.partitionKey, "#sk": TABLE.sortKey },
  ExpressionAttributeValues: { ":pk": partitionKey(key), ":from": from, ":to": to },
});

const itemKey = (key: SessionKey, sortKey: string): Item => ({
  [TABLE.partitionKey]: partitionKey(key),
  [TABLE.sortKey]: sortKey,
});

/** Eight digits sort as numbers do. */
const padded = (turn: number): string => String(turn).padStart(8, "0");

/** 32 hex digits in 22 characters: every byte of a key is paid for. */
export const short = (hex: string): string => Buffer.from(hex, "hex").toString("base64url");
