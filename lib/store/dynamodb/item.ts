/**
 * A session's HEAD item. Every field is written and read by name. What DynamoDB's own types would
 * change (the order of keys, long numbers, empty arrays) is kept as JSON text.
 */
import { childPath, InvalidInputError, invalid } from "../../session/invalid.ts";
import { isPlainObject, kindOf, toJsonObject } from "../../session/json.ts";
import { parseTimestamp } from "../../session/timestamp.ts";
import type { OpenTurn } from "../../session/turn.ts";
import { decodeTurns, encodeTurns } from "../codec.ts";
import { DamagedSessionError } from "../errors.ts";
import { partitionKey } from "../keys.ts";
import type { ClaimRecord, Head, RecentTurn, SessionKey } from "../store.ts";
import { EXPIRY_SHARDS, HEAD_KEY, TABLE } from "./table.ts";

export type Item = Record<string, unknown>;

/** The form of the items that this code writes; it reads no other. */
const FORMAT = 1;

export const itemKey = (key: SessionKey): Item => ({
  [TABLE.partitionKey]: partitionKey(key),
  [TABLE.sortKey]: HEAD_KEY,
});

export const encodeHead = (head: Head): Item => ({
  ...itemKey(head),
  format: FORMAT,
  incarnation: head.incarnation,
  version: head.version,
  metadata_version: head.metadataVersion,
  fence: head.fence,
  owner: head.owner,
  session_id: head.sessionId,
  created_at: head.createdAt,
  created_key: `${new Date(parseTimestamp(head.createdAt, "created_at")).toISOString()}#${head.sessionId}`,
  updated_at: head.updatedAt,
  expires_at: head.expiresAtSeconds,
  expiry_shard: Number.parseInt(head.incarnation.slice(0, 1), 16) % EXPIRY_SHARDS,
  ...(head.deletedAtSeconds === undefined ? {} : { deleted_at: head.deletedAtSeconds }),
  metadata: JSON.stringify(head.metadata),
  message_count: head.counts.messages,
  turn_count: head.counts.turns,
  size_bytes: head.counts.bytes,
  tail: encodeTurns(head.tail),
  tail_from: head.tailFrom,
  recent: Object.fromEntries(Array.from(head.recent, ([key, turn]) => [key, encodeRecent(turn)])),
  ...(head.claim ? { claim: encodeClaim(head.claim) } : {}),
  ...(head.open ? { open: encodeOpen(head.open) } : {}),
});

export const encodeClaim = ({ attempt, turnId, untilMs }: ClaimRecord): Item => ({
  attempt,
  turn_id: turnId,
  until_ms: untilMs,
});

export const encodeOpen = ({ turnId, requestHash, input, startedAt }: OpenTurn): Item => ({
  turn_id: turnId,
  request_hash: requestHash,
  input,
  started_at: startedAt,
});

export const encodeRecent = ({ attempt, version, requestHash }: RecentTurn): Item => ({
  attempt,
  version,
  request_hash: requestHash,
});

/** @throws {DamagedSessionError} where the item isn't one that this code wrote */
export const decodeHead = (item: Item): Head => {
  const where = `session ${String(item["session_id"])}, item ${HEAD_KEY}`;
  try {
    const head = new Fields(item, "");
    if (head.number("format") !== FORMAT) {
      throw invalid(
        "format",
        `is ${head.number("format")}, and this version of oneturn reads ${FORMAT}`,
      );
    }
    const deletedAtSeconds =
      item["deleted_at"] === undefined ? undefined : head.number("deleted_at");
    const claim = item["claim"] === undefined ? undefined : head.fields("claim");
    const open = item["open"] === undefined ? undefined : head.fields("open");
    const recent = head.fields("recent");
    return {
      owner: head.text("owner"),
      sessionId: head.text("session_id"),
      incarnation: head.text("incarnation"),
      version: head.number("version"),
      metadataVersion: head.number("metadata_version"),
      fence: head.number("fence"),
      createdAt: head.text("created_at"),
      updatedAt: head.text("updated_at"),
      expiresAtSeconds: head.number("expires_at"),
      ...(deletedAtSeconds === undefined ? {} : { deletedAtSeconds }),
      metadata: toJsonObject(JSON.parse(head.text("metadata")), "metadata"),
      counts: {
        messages: head.number("message_count"),
        turns: head.number("turn_count"),
        bytes: head.number("size_bytes"),
      },
      tail: decodeTurns(head.text("tail"), where),
      tailFrom: head.number("tail_from"),
      recent: new Map(recent.keys().map((key) => [key, decodeRecent(recent.fields(key))])),
      ...(claim ? { claim: decodeClaim(claim) } : {}),
      ...(open ? { open: decodeOpen(open) } : {}),
    };
  } catch (cause) {
    if (!(cause instanceof InvalidInputError || cause instanceof SyntaxError)) throw cause;
    throw new DamagedSessionError(`${where}: ${cause.message}`, { cause });
  }
};

const decodeClaim = (claim: Fields): ClaimRecord => ({
  attempt: claim.text("attempt"),
  turnId: claim.text("turn_id"),
  untilMs: claim.number("until_ms"),
});

const decodeOpen = (open: Fields): OpenTurn => ({
  status: "open",
  turnId: open.text("turn_id"),
  requestHash: open.text("request_hash"),
  input: open.text("input"),
  startedAt: open.text("started_at"),
});

const decodeRecent = (recent: Fields): RecentTurn => ({
  attempt: recent.text("attempt"),
  version: recent.number("version"),
  requestHash: recent.text("request_hash"),
});

/** Reads the fields of a map by name and type. */
class Fields {
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
