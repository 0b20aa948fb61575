/**
 * Deletes sessions that have expired, with all that belongs to them.
 *
 * HEAD is the only item of a session in the expiry index. So it goes last, when nothing else lies in
 * its partition: a sweep that ends anywhere leaves what the next one finds. What was read says only
 * where to look; whether an item may go, it says itself, in the condition of its delete. So any
 * number of sweeps may run at once, beside any number of turns.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import * as when from "./conditions.ts";
import type { Change } from "./expressions.ts";
import { HEAD, sortKeyPrefixes } from "./keys.ts";
import { dynamoTable, type Table } from "./requests.ts";
import { decodeResume, encodeResume, type Position } from "./resume.ts";
import type { Item } from "./table.ts";
import { AFTER_HEAD_SECONDS, EXPIRY_SHARDS, TABLE } from "./table.ts";

export interface SweeperOptions {
  /** Its timeouts and tries bound every request: see `dynamoClient`. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** How many items a query reads at once. 500 by default. */
  readonly pageSize?: number;
}

export interface Sweeper {
  /**
   * One pass over all that has expired by `nowMs`. May be repeated at any time.
   *
   * @throws {InvalidInputError} for a `resume` that no sweep of this table gave
   * @throws {StoreUnavailableError} where the table gives no answer: what was deleted so far is deleted
   */
  sweep(request: SweepRequest): Promise<SweepReport>;
}

export interface SweepRequest {
  readonly nowMs: number;
  /** Of the report of a sweep that had to stop. */
  readonly resume?: string;
  /** Asked before each request. When it says so, one in each shard may be on its way. */
  readonly isOver: () => boolean;
}

/**
 * What this sweep did. Of several at once each item is counted by one; where the answer to a delete
 * got lost on the way, by none.
 */
export interface SweepReport {
  /** Sessions that are wholly gone: their HEADs. */
  readonly sessions: number;
  /** Other items that were deleted. */
  readonly items: number;
  /** Expired sessions left for a later sweep, since something of theirs isn't due yet. */
  readonly kept: number;
  /** Items that no version of this code wrote. They are left as they are. */
  readonly failed: number;
  /** Where to go on: the sweep was stopped. Absent when it came to its end. */
  readonly resume?: string;
}

export const dynamoSweeper = ({ client, tableName, pageSize }: SweeperOptions): Sweeper =>
  sweeperOn(dynamoTable(client, tableName), pageSize);

/** For a table that is reached in another way. */
export const sweeperOn = (table: Table, pageSize = 500): Sweeper => ({
  sweep: async ({ nowMs, resume, isOver }) => {
    const now = Math.floor(nowMs / 1000);
    const positions = resume === undefined ? FROM_THE_START : decodeResume(resume, now);
    let hasFailed = false;
    const sweep: Sweep = {
      table,
      pageSize,
      nowMs,
      now,
      counts: { sessions: 0, items: 0, kept: 0, failed: 0 },
      isOver: () => hasFailed || isOver(),
    };
    const shards = positions.map((position, shard) =>
      sweepShard(sweep, shard, position).catch((error: unknown) => {
        hasFailed = true;
        throw error;
      }),
    );
    // After a failure too, none goes on in the background.
    await Promise.allSettled(shards);
    const reached = await Promise.all(shards);
    const isDone = reached.every((position) => position === "done");
    return { ...sweep.counts, ...(isDone ? {} : { resume: encodeResume(reached) }) };
  },
});

const FROM_THE_START: readonly Position[] = Array.from({ length: EXPIRY_SHARDS }, () => "start");

interface Sweep {
  readonly table: Table;
  readonly pageSize: number;
  readonly nowMs: number;
  /** In seconds, as expiry is counted. */
  readonly now: number;
  readonly counts: { sessions: number; items: number; kept: number; failed: number };
  readonly isOver: () => boolean;
}

/** Gives how far it came: everything up to there was looked at. */
const sweepShard = async (sweep: Sweep, shard: number, from: Position): Promise<Position> => {
  let position = from;
  while (position !== "done" && !sweep.isOver()) {
    const page = await sweep.table.query({
      IndexName: TABLE.indexes.byExpiry,
      KeyConditionExpression: "#shard = :shard AND #expires_at <= :now",
      ExpressionAttributeNames: { "#shard": "expiry_shard", "#expires_at": TABLE.ttlAttribute },
      ExpressionAttributeValues: { ":shard": shard, ":now": sweep.now },
      Limit: sweep.pageSize,
      ...(position === "start" ? {} : { ExclusiveStartKey: position }),
    });
    for (const entry of page.items) {
      if (!(await sweepSession(sweep, entry))) return position;
      position = entry;
    }
    position = page.next ?? "done";
  }
  return position;
};

/** Whether it came to its end before the sweep's time was over. */
const sweepSession = async (sweep: Sweep, entry: Item): Promise<boolean> => {
  const { counts, now, isOver } = sweep;
  if (isOver()) return false;
  // HEAD sorts before all others of its partition; what comes behind it says whether it is alone.
  const page = await readPartition(sweep, entry, { Limit: 2 });
  const item = isHead(entry) ? page.items.find(isHead) : entry;
  if (!item) return true;
  const head = decodeDying(item);
  if (!head) {
    counts.failed++;
    return true;
  }
  if (head.expiresAt > now) return true;

  const isDue = head.isDeleted || head.expiresAt + AFTER_HEAD_SECONDS <= now;
  const rest = isDue || page.items.length === 1 ? await sweepItems(sweep, head, page) : "left";
  if (rest === "over" || isOver()) return false;
  if (rest === "left") counts.kept++;
  else await deleteHead(sweep, head);
  return true;
};

interface Dying {
  /** As stored. */
  readonly item: Item;
  readonly incarnation: Uint8Array;
  readonly expiresAt: number;
  readonly isDeleted: boolean;
}

/** Of a HEAD no more than cleanup has to know: one whose history can't be read goes all the same. */
const decodeDying = (item: Item): Dying | undefined => {
  const { incarnation, deleted_at, [TABLE.ttlAttribute]: expiresAt } = item;
  if (!isHead(item) || typeof expiresAt !== "number" || !(incarnation instanceof Uint8Array))
    return undefined;
  return { item, incarnation, expiresAt, isDeleted: deleted_at !== undefined };
};

/** Deletes what is due in a session's partition, but HEAD. */
const sweepItems = async (
  sweep: Sweep,
  head: Dying,
  first: Page,
): Promise<"gone" | "left" | "over"> => {
  let rest: "gone" | "left" = "gone";
  let page = first;
  for (;;) {
    for (const item of page.items.filter((each) => !isHead(each))) {
      if (sweep.isOver()) return "over";
      if (!(await deleteItem(sweep, head, item))) rest = "left";
    }
    if (!page.next) return rest;
    if (sweep.isOver()) return "over";
    page = await readPartition(sweep, head.item, {
      Limit: sweep.pageSize,
      ExclusiveStartKey: page.next,
    });
  }
};

type Page = Awaited<ReturnType<Table["query"]>>;

const readPartition = (
  { table }: Sweep,
  entry: Item,
  page: { readonly Limit: number; readonly ExclusiveStartKey?: Item },
): Promise<Page> =>
  table.query({
    KeyConditionExpression: "#pk = :pk",
    ProjectionExpression: "#pk, #sk, #expires_at, #incarnation, #deleted_at",
    ExpressionAttributeNames: {
      "#pk": TABLE.partitionKey,
      "#sk": TABLE.sortKey,
      "#expires_at": TABLE.ttlAttribute,
      "#incarnation": "incarnation",
      "#deleted_at": "deleted_at",
    },
    ExpressionAttributeValues: { ":pk": entry[TABLE.partitionKey] },
    ConsistentRead: true,
    ...page,
  });

const isHead = (item: Item): boolean => item[TABLE.sortKey] === HEAD;

/** Whether it is gone, whoever deleted it. */
const deleteItem = async (
  { table, counts, now }: Sweep,
  head: Dying,
  item: Item,
): Promise<boolean> => {
  const isFinal = head.isDeleted && belongsTo(head, item);
  const expiresAt = item[TABLE.ttlAttribute];
  if (!isFinal && typeof expiresAt !== "number") {
    counts.failed++;
    return false;
  }
  if (!isFinal && Number(expiresAt) > now) return false;
  const change: Change = isFinal
    ? { condition: [when.STILL_THERE] }
    : { condition: [when.EXPIRED], values: { now } };
  const deleted = await table.deleteIf(item, change);
  if (deleted.applied) counts.items++;
  return deleted.applied || deleted.seen === undefined;
};

const belongsTo = ({ incarnation }: Dying, item: Item): boolean => {
  const prefixes = sortKeyPrefixes(Buffer.from(incarnation).toString("hex"));
  return prefixes.some((prefix) => String(item[TABLE.sortKey]).startsWith(prefix));
};

const deleteHead = async (
  { table, counts, now, nowMs }: Sweep,
  { item, incarnation }: Dying,
): Promise<void> => {
  const deleted = await table.deleteIf(item, {
    condition: [when.SAME_INCARNATION, when.EXPIRED, when.NO_LEASE_RUNS],
    values: { incarnation, now, now_ms: nowMs },
    names: { until_ms: "u" },
  });
  if (deleted.applied) counts.sessions++;
  else if (Number(deleted.seen?.[TABLE.ttlAttribute]) <= now) counts.kept++;
};
