/**
 * A session's HEAD item. Every field is written and read by name. What DynamoDB's own types would
 * change (the order of keys, long numbers, empty arrays) is kept as JSON text. HEAD is paid for by
 * its size at every claim and commit, so ids are bytes and inner names are short.
 */
import { invalid } from "../../session/invalid.ts";
import { toJsonObject } from "../../session/json.ts";
import { formatTimestamp, parseTimestamp } from "../../session/timestamp.ts";
import type { OpenTurn } from "../../session/turn.ts";
import { decodeTurns, encodeTurn, reading } from "../codec.ts";
import type { ClaimRecord, Head, Outcome, RecentTurn, StoredOpenTurn, TailTurn } from "../head.ts";
import { type Content, contentBytes, decodeContent, encodeContent } from "./content.ts";
import { Fields } from "./fields.ts";
import { HEAD, headKey } from "./keys.ts";
import { split } from "./pieces.ts";
import { EXPIRY_SHARDS, type Item } from "./table.ts";

/** The form of the items that this code writes; it reads no other. */
const FORMAT = 1;

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

/** Of content of an open turn in HEAD, which is paid for at each checkpoint. */
export const MAX_OPEN_INLINE_BYTES = 1024;

/** Of an input that is too large for HEAD: what a look at the session shows. */
const PREVIEW_LENGTH = 300;

/** The input, or its beginning and how many pieces it has elsewhere. */
const encodeInput = (input: string): { readonly i: Content; readonly n?: number } => {
  const content = encodeContent(input);
  if (contentBytes(content) <= MAX_OPEN_INLINE_BYTES) return { i: content };
  const preview = input.slice(0, PREVIEW_LENGTH).replace(HALF_A_CHARACTER, "");
  return { i: preview, n: split(content).length };
};

/** What a cut inside a surrogate pair leaves at the end. */
const HALF_A_CHARACTER = /[\uD800-\uDBFF]$/;

/** An open turn without steps. */
export const encodeOpen = (open: OpenTurn): Item => ({
  t: open.turnId,
  h: bytes(open.requestHash),
  ...encodeInput(open.input),
  s: encodeTimestamp(open.startedAt),
  ...(open.supersedes === undefined ? {} : { p: open.supersedes }),
  k: [],
  r: 0,
});

export const encodeRecent = ({ attempt, version, requestHash, outcome }: RecentTurn): Item => ({
  a: bytes(attempt),
  v: version,
  h: bytes(requestHash),
  ...(outcome === "done" ? {} : { o: outcome }),
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

const decodeOpen = (open: Fields): StoredOpenTurn => ({
  status: "open",
  turnId: open.text("t"),
  requestHash: open.id("h"),
  input: decodeContent(open.value("i"), "open.i"),
  startedAt: formatTimestamp(open.number("s")),
  ...(open.has("p") ? { supersedes: open.text("p") } : {}),
  steps: open.list("k").length,
  revision: open.number("r"),
});

export const decodeRecent = (recent: Fields): RecentTurn => ({
  attempt: recent.id("a"),
  version: recent.number("v"),
  requestHash: recent.id("h"),
  outcome: recent.has("o") ? recent.word("o", NAMED_OUTCOMES) : "done",
});

/** The usual one isn't spelled out. */
const NAMED_OUTCOMES: readonly Outcome[] = ["interrupted", "abandoned"];
