/**
 * A session's HEAD item. Every field is written and read by name. What DynamoDB's own types would
 * change (the order of keys, long numbers, empty arrays) is kept as JSON text. HEAD is paid for by
 * its size at every claim and commit, so ids are bytes and inner names are short.
 */
import { childPath, type InvalidInputError, invalid } from "../../session/invalid.ts";
import { isPlainObject, kindOf, toJsonObject } from "../../session/json.ts";
import { formatTimestamp, parseTimestamp } from "../../session/timestamp.ts";
import type { OpenTurn } from "../../session/turn.ts";
import { decodeTurns, encodeTurn, reading } from "../codec.ts";
import type { ClaimRecord, Head, RecentTurn, TailTurn } from "../store.ts";
import { type Content, decodeContent, encodeContent } from "./content.ts";
import { HEAD, headKey } from "./keys.ts";
import { EXPIRY_SHARDS, type Item } from "./table.ts";

/** The form of the items that this code writes; it reads no other. */
const FORMAT = 1;

/** More of an open turn's input isn't kept in HEAD: it is there to be looked at. */
const MAX_OPEN_INPUT_LENGTH = 500;

export const encodeHead = (head: Head): Item => ({
  ...headKey(head),
  format: FORMAT,
  incarnation: bytes(head.incarnation),
  version: head.version,
  metadata_version: head.metadataVersion,
  fence: head.fence,
  owner: head.owner,
  session_id: head.sessionId,
  created_at: head.createdAt,
  created_key: `${new Date(parseTimestamp(head.createdAt, "created_at")).toISOString()}#${head.sessionId}`,
  updated_at: encodeTimestamp(head.updatedAt),
  expires_at: head.expiresAtSeconds,
  expiry_shard: Number.parseInt(head.incarnation.slice(0, 1), 16) % EXPIRY_SHARDS,
  ...(head.deletedAtSeconds === undefined ? {} : { deleted_at: head.deletedAtSeconds }),
  metadata: JSON.stringify(head.metadata),
  message_count: head.counts.messages,
  turn_count: head.counts.turns,
  size_bytes: head.counts.bytes,
  tail: encodeTail(head.tail),
  tail_from: head.tailFrom,
  ...(head.superseded.length === 0 ? {} : { superseded: head.superseded }),
  recent: Object.fromEntries(Array.from(head.recent, ([key, turn]) => [key, encodeRecent(turn)])),
  ...(head.claim ? { claim: encodeClaim(head.claim, head.open) } : {}),
  ...(head.open ? { open: encodeOpen(head.open) } : {}),
});

export const encodeTail = (tail: readonly TailTurn[]): Content =>
  encodeContent(`[${tail.map(encodeTurn).join(",")}]`);

/** A timestamp of our own, as whole milliseconds. */
export const encodeTimestamp = (timestamp: string): number => parseTimestamp(timestamp, "");

/** The claim's turn is the open one, and needn't be named twice. */
export const encodeClaim = (
  { attempt, turnId, untilMs }: ClaimRecord,
  open: OpenTurn | undefined,
): Item => ({
  a: bytes(attempt),
  u: untilMs,
  ...(open?.turnId === turnId ? {} : { t: turnId }),
});

export const encodeOpen = ({ turnId, requestHash, input, startedAt }: OpenTurn): Item => ({
  t: turnId,
  h: bytes(requestHash),
  i: input.slice(0, MAX_OPEN_INPUT_LENGTH).toWellFormed(),
  s: encodeTimestamp(startedAt),
});

export const encodeRecent = ({ attempt, version, requestHash }: RecentTurn): Item => ({
  a: bytes(attempt),
  v: version,
  h: bytes(requestHash),
});

export const bytes = (hex: string): Uint8Array => Buffer.from(hex, "hex");

/** @throws {DamagedSessionError} where the item isn't one that this code wrote */
export const decodeHead = (item: Item): Head =>
  reading(`session ${String(item["session_id"])}, item ${HEAD}`, () => {
    const head = new Fields(item, "");
    if (head.number("format") !== FORMAT) {
      throw invalid(
        "format",
        `is ${head.number("format")}, and this version of oneturn reads ${FORMAT}`,
      );
    }
    const open = head.has("open") ? decodeOpen(head.fields("open")) : undefined;
    const recent = head.fields("recent");
    return {
      owner: head.text("owner"),
      sessionId: head.text("session_id"),
      incarnation: head.id("incarnation"),
      version: head.number("version"),
      metadataVersion: head.number("metadata_version"),
      fence: head.number("fence"),
      createdAt: head.text("created_at"),
      updatedAt: formatTimestamp(head.number("updated_at")),
      expiresAtSeconds: head.number("expires_at"),
      ...(head.has("deleted_at") ? { deletedAtSeconds: head.number("deleted_at") } : {}),
      metadata: toJsonObject(JSON.parse(head.text("metadata")), "metadata"),
      counts: {
        messages: head.number("message_count"),
        turns: head.number("turn_count"),
        bytes: head.number("size_bytes"),
      },
      tail: decodeTurns(decodeContent(item["tail"], "tail")),
      tailFrom: head.number("tail_from"),
      superseded: head.has("superseded") ? head.numbers("superseded") : [],
      recent: new Map(recent.keys().map((key) => [key, decodeRecent(recent.fields(key))])),
      ...(head.has("claim") ? { claim: decodeClaim(head.fields("claim"), open) } : {}),
      ...(open ? { open } : {}),
    };
  });

const decodeClaim = (claim: Fields, open: OpenTurn | undefined): ClaimRecord => ({
  attempt: claim.id("a"),
  turnId: open && !claim.has("t") ? open.turnId : claim.text("t"),
  untilMs: claim.number("u"),
});

const decodeOpen = (open: Fields): OpenTurn => ({
  status: "open",
  turnId: open.text("t"),
  requestHash: open.id("h"),
  input: open.text("i"),
  startedAt: formatTimestamp(open.number("s")),
});

export const decodeRecent = (recent: Fields): RecentTurn => ({
  attempt: recent.id("a"),
  version: recent.number("v"),
  requestHash: recent.id("h"),
});

/** Reads the fields of a map by name and type. */
export class Fields {
  readonly #map: Item;
  readonly #path: string;

  constructor(map: unknown, path: string) {
    if (!isPlainObject(map)) throw invalid(path, `must be a map, not ${kindOf(map)}`);
    this.#map = map;
    this.#path = path;
  }

  keys(): string[] {
    return Object.keys(this.#map);
  }

  has(name: string): boolean {
    return this.#map[name] !== undefined;
  }

  text(name: string): string {
    const value = this.#map[name];
    if (typeof value !== "string") throw this.#fault(name, "text");
    return value;
  }

  number(name: string): number {
    const value = this.#map[name];
    if (typeof value !== "number") throw this.#fault(name, "a number");
    return value;
  }

  numbers(name: string): number[] {
    const values = this.#map[name];
    if (!Array.isArray(values)) throw this.#fault(name, "a list");
    return values.map((value: unknown) => {
      if (typeof value !== "number") throw this.#fault(name, "a list of numbers");
      return value;
    });
  }

  /** Bytes, in hex. */
  id(name: string): string {
    const value = this.#map[name];
    if (!(value instanceof Uint8Array)) throw this.#fault(name, "bytes");
    return Buffer.from(value).toString("hex");
  }

  fields(name: string): Fields {
    return new Fields(this.#map[name], childPath(this.#path, name));
  }

  #fault(name: string, wanted: string): InvalidInputError {
    return invalid(
      childPath(this.#path, name),
      `must be ${wanted}, not ${kindOf(this.#map[name])}`,
    );
  }
}
