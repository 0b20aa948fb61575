/**
 * Each method is one request with its condition, and one consistent read where the condition failed
 * and the engine didn't say what stands there.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { IfMatch } from "../head.ts";
import {
  type Claim,
  type ClaimResult,
  type SessionStore,
  TOMBSTONE_SECONDS,
  type WriteResult,
} from "../store.ts";
import { commitChange, heldValues, OPEN_NAMES } from "./commit.ts";
import * as when from "./conditions.ts";
import { asSeen, displacedChange, seenValues } from "./displaced.ts";
import type { Change } from "./expressions.ts";
import {
  bytes,
  decodeHead,
  encodeClaim,
  encodeHead,
  encodeOpen,
  encodeTail,
  encodeTimestamp,
} from "./item.ts";
import { headKey } from "./keys.ts";
import { listSessions } from "./list.ts";
import { dynamoOpenTurns } from "./open.ts";
import { dynamoParts } from "./parts.ts";
import { prepare } from "./prepare.ts";
import { purge } from "./purge.ts";
import { dynamoTable, type Table, type Written } from "./requests.ts";
import { dynamoSegments, type SegmentsOptions } from "./segments.ts";
import { dynamoSummaries } from "./summaries.ts";
import type { Item } from "./table.ts";

export interface DynamoSessionStoreOptions {
  /** Its timeouts and tries bound every operation: see `dynamoClient`. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** Of older history, as JSON, that the process keeps in memory. 32 MB by default. */
  readonly cacheBytes?: number;
}

export const dynamoSessionStore = ({
  client,
  tableName,
  cacheBytes = 32_000_000,
}: DynamoSessionStoreOptions): SessionStore =>
  sessionStoreOn(dynamoTable(client, tableName), { cacheBytes });

/** For a table that is reached in another way. */
export const sessionStoreOn = (
  table: Table,
  { cacheBytes, ...limits }: SegmentsOptions,
): SessionStore => {
  const parts = dynamoParts(table, cacheBytes / 2);
  const openTurns = dynamoOpenTurns(table);
  const summaries = dynamoSummaries(table);
  const segments = dynamoSegments(table, parts, { ...limits, cacheBytes: cacheBytes / 2 });

  return {
    saveInput: openTurns.saveInput,
    openTurn: openTurns.read,
    turns: segments.turns,
    seal: segments.seal,
    findTurn: segments.findTurn,
    summary: summaries.summary,
    saveSummary: summaries.saveSummary,
    prepare: (head, history) => prepare({ segments, parts }, head, history),
    list: (request) => listSessions(table, request),
    purge: (place) => purge(table, place),

    read: async (key) => {
      const item = await table.read(headKey(key));
      return item && decodeHead(item);
    },

    create: async ({ head, over, nowMs }) => {
      const change: Change = over
        ? {
            condition: [when.SAME_INCARNATION, when.DEAD],
            values: { incarnation: bytes(over.incarnation), now: seconds(nowMs) },
          }
        : { condition: [when.NOTHING_THERE] };
      return written(await table.putIf(encodeHead(head), change));
    },

    claim: async (claim) =>
      granted(
        await table.update(headKey(claim.key), {
          set: [...GRANT, "#open = if_not_exists(#open, :open)"],
          condition: [
            ...(claim.incarnation === undefined ? [] : [when.SAME_INCARNATION]),
            ...claimable(claim.ifMatch),
            when.UNCLAIMED,
            when.NO_OTHER_OPEN_TURN,
          ],
          values: claimValues(claim),
          names: { ...OPEN_NAMES, turn_key: claim.turnKey },
        }),
      ),

    takeOver: async ({ seen, displaced, ...claim }) => {
      const resumes =
        seen.open?.turnId === claim.open.turnId && seen.open.requestHash === claim.open.requestHash;
      const kept = await displacedChange(parts, seen, displaced);
      return granted(
        await table.update(headKey(claim.key), {
          set: [...GRANT, ...(resumes ? [] : ["#open = :open"]), ...kept.set],
          remove: kept.remove,
          condition: [...claimable(claim.ifMatch), ...asSeen(seen), ...kept.condition],
          values: { ...claimValues(claim), ...seenValues(seen), ...kept.values },
          names: { ...OPEN_NAMES, ...kept.names, turn_key: claim.turnKey },
        }),
      );
    },

    displace: async ({ key, seen, displaced, nowMs }) => {
      const kept = await displacedChange(parts, seen, displaced);
      return written(
        await table.change(headKey(key), {
          set: kept.set,
          remove: ["#claim", "#open", ...kept.remove],
          condition: [when.NOT_DELETED, when.NOT_EXPIRED, ...asSeen(seen), ...kept.condition],
          values: { now: seconds(nowMs), one: 1, ...seenValues(seen), ...kept.values },
          names: { ...OPEN_NAMES, ...kept.names },
        }),
      );
    },

    renew: async ({ untilMs, ...held }) =>
      written(
        await table.change(headKey(held.key), {
          set: ["#claim.#until_ms = :until_ms"],
          condition: [when.SAME_INCARNATION, when.HELD, when.LEASE_GROWS],
          values: { ...heldValues(held), until_ms: untilMs },
          names: OPEN_NAMES,
        }),
      ),

    commit: async (commit) =>
      written(await table.change(headKey(commit.key), await commitChange(parts, commit))),

    checkpoint: async (write) =>
      written(await table.change(headKey(write.key), await openTurns.checkpoint(write))),

    release: async ({ keepOpen, ...held }) =>
      written(
        await table.change(headKey(held.key), {
          remove: keepOpen ? ["#claim"] : ["#claim", "#open"],
          condition: [when.SAME_INCARNATION, when.HELD],
          values: heldValues(held),
          names: OPEN_NAMES,
        }),
      ),

    delete: async ({ key, incarnation, nowMs, ifMatch }) =>
      written(
        await table.change(headKey(key), {
          set: [
            "#deleted_at = :now",
            "#expires_at = :tombstone_until",
            "#metadata = :no_metadata",
            "#tail = :no_turns",
            "#recent = :none",
          ],
          // Without its created_key the session leaves the owner's list.
          remove: ["#claim", "#open", "#created_key"],
          condition: [when.SAME_INCARNATION, when.NOT_DELETED, ...matching(ifMatch)],
          values: {
            ...ifMatchValues(ifMatch),
            incarnation: bytes(incarnation),
            now: seconds(nowMs),
            tombstone_until: seconds(nowMs) + TOMBSTONE_SECONDS,
            no_metadata: "{}",
            no_turns: encodeTail([]),
            none: {},
          },
        }),
      ),

    setMetadata: async ({
      key,
      incarnation,
      metadata,
      seenMetadataVersion,
      updatedAt,
      nowMs,
      ifMatch,
    }) =>
      written(
        await table.change(headKey(key), {
          set: [
            "#metadata = :metadata",
            "#metadata_version = #metadata_version + :one",
            "#updated_at = :updated_at",
          ],
          condition: [
            when.SAME_INCARNATION,
            when.NOT_DELETED,
            when.NOT_EXPIRED,
            when.METADATA_AS_SEEN,
            ...matching(ifMatch),
          ],
          values: {
            ...ifMatchValues(ifMatch),
            incarnation: bytes(incarnation),
            now: seconds(nowMs),
            one: 1,
            metadata: JSON.stringify(metadata),
            updated_at: encodeTimestamp(updatedAt),
            seen_metadata_version: seenMetadataVersion,
          },
        }),
      ),
  };
};

const written = (result: Written): WriteResult =>
  result.applied
    ? { applied: true }
    : { applied: false, seen: result.seen && decodeHead(result.seen) };

const granted = (result: Written): ClaimResult =>
  result.applied
    ? { applied: true, head: decodeHead(result.item) }
    : { applied: false, seen: result.seen && decodeHead(result.seen) };

const GRANT = ["#claim = :claim", "#fence = #fence + :one"];

const claimable = (ifMatch: IfMatch | undefined): string[] => [
  when.NOT_DELETED,
  when.NOT_EXPIRED,
  when.TURN_NOT_DONE,
  ...matching(ifMatch),
];

const claimValues = ({
  claim,
  open,
  incarnation,
  ifMatch,
  nowMs,
}: Omit<Claim, "key" | "turnKey">): Item => ({
  ...ifMatchValues(ifMatch),
  incarnation: incarnation && bytes(incarnation),
  one: 1,
  now: seconds(nowMs),
  claim: encodeClaim(claim, open),
  open: encodeOpen(open),
  turn_id: open.turnId,
  request_hash: bytes(open.requestHash),
});

const matching = (ifMatch: IfMatch | undefined): string[] => [
  ...(ifMatch ? [when.VERSION_MATCHES] : []),
  ...(ifMatch?.metadataVersion === undefined ? [] : [when.METADATA_VERSION_MATCHES]),
];

const ifMatchValues = (ifMatch: IfMatch | undefined): Item => ({
  if_version: ifMatch?.version,
  if_metadata_version: ifMatch?.metadataVersion,
});

const seconds = (epochMs: number): number => Math.floor(epochMs / 1000);
