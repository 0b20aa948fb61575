/** Sessions that are about to expire, made by the turns and sessions themselves, and the tables they lie in. */
import { createHash } from "node:crypto";
import { BatchWriteCommand, PutCommand, ScanCommand } from "@aws-sdk/lib-dynamodb";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import {
  dynamoSweeper,
  type SweepReport,
  type SweepRequest,
} from "../../lib/store/dynamodb/sweep.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import type { SessionKey } from "../../lib/store/head.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { type FreshTable, freshTable } from "../support/dynamodb.ts";
import type { SentRequest } from "../support/faulty.ts";

export const SECOND_MS = 1000;
export const DAY_MS = 86_400 * SECOND_MS;

/** Every expiry lies decades ahead of the machine's clock: an engine's own TTL has nothing to delete. */
export const BIRTH_MS = Date.UTC(2100, 0, 1);

export const LIFETIME_MS = 30 * DAY_MS;
export const EXPIRY_MS = BIRTH_MS + LIFETIME_MS;

export const worldOn = async (endpoint: string, startMs = BIRTH_MS) => {
  const table = await freshTable(endpoint);
  const store = dynamoSessionStore(table);
  const clock = settableClock(startMs);
  const agent = new Agent({
    model: { complete: async () => ({ message: assistantMessage("ok") }) },
  });
  const lifetimeSeconds = LIFETIME_MS / 1000;
  const sessions = createSessions({ store, clock, lifetimeSeconds });
  const turns = createTurns({ agent, store, clock, lifetimeSeconds });
  let made = 0;
  const newKey = (): SessionKey => ({ owner: "ann b", sessionId: `session-${made++}` });

  const itemsOf = async (key: SessionKey): Promise<Item[]> =>
    (await itemsIn(table)).filter(isOf(key));

  return {
    ...table,
    itemsOf,
    /** Writes an item over. */
    change: (item: Item, fields: Item): Promise<unknown> =>
      table.client.send(
        new PutCommand({ TableName: table.tableName, Item: { ...item, ...fields } }),
      ),
    /** Deletes the session as a process does that ends before it has removed the history. */
    leaveTombstone: async (key: SessionKey): Promise<void> => {
      const incarnation = (await store.read(key))?.incarnation ?? "";
      await store.delete({ key, incarnation, nowMs: clock.nowMs() });
    },
    store,
    clock,
    sessions,
    turns,
    sweep: (nowMs: number, options: Partial<SweepRequest> & { pageSize?: number } = {}) =>
      sweepOf(table, nowMs, options),
    /** HEAD, and nothing else. */
    short: async (key = newKey()): Promise<SessionKey> => {
      await turns.run({ ...key, input: "hello" });
      return key;
    },
    /** With segments, records of callers' turns, a turn in parts, and the pieces of its input. */
    long: async (key = newKey()): Promise<SessionKey> => {
      for (const [n, bytes] of [1500, 6000, 1500, 1500].entries()) {
        await turns.run({
          ...key,
          turnId: `turn-${n}`,
          input: noise(`${key.sessionId} ${n}`, bytes),
        });
      }
      return key;
    },
    historyOf: async (key: SessionKey) =>
      (await sessions.export(await sessions.read(key))).messages,
  };
};

export type World = Awaited<ReturnType<typeof worldOn>>;

export const sweepOf = (
  { client, tableName }: Pick<FreshTable, "tableName"> & Parameters<typeof dynamoSweeper>[0],
  nowMs: number,
  { pageSize, ...request }: Partial<SweepRequest> & { pageSize?: number } = {},
): Promise<SweepReport> =>
  dynamoSweeper({ client, tableName, ...(pageSize === undefined ? {} : { pageSize }) }).sweep({
    nowMs,
    isOver: () => false,
    ...request,
  });

/** All that lies in a table, in the order of its keys. */
export const itemsIn = async ({ client, tableName }: FreshTable): Promise<Item[]> => {
  const items: Item[] = [];
  let start: Item | undefined;
  do {
    const page = await client.send(
      new ScanCommand({
        TableName: tableName,
        ConsistentRead: true,
        ...(start ? { ExclusiveStartKey: start } : {}),
      }),
    );
    items.push(...(page.Items ?? []));
    start = page.LastEvaluatedKey;
  } while (start);
  return items.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
};

export const nameOf = ({ pk, sk }: Item): string => `${pk} ${sk}`;

/** A fresh table with these items. */
export const tableWith = async (endpoint: string, items: readonly Item[]): Promise<FreshTable> => {
  const table = await freshTable(endpoint);
  for (let n = 0; n < items.length; n += 25) {
    const requests = items.slice(n, n + 25).map((item) => ({ PutRequest: { Item: item } }));
    await table.client.send(
      new BatchWriteCommand({ RequestItems: { [table.tableName]: requests } }),
    );
  }
  return table;
};

export const NOTHING = { sessions: 0, items: 0, kept: 0, failed: 0 };

export const isDelete = ({ operation }: SentRequest): boolean => operation === "DeleteItem";
export const isIndexQuery = ({ body }: SentRequest): boolean => body.includes("by_expiry");

export const isHead = ({ sk }: Item): boolean => sk === "HEAD";
export const isOf =
  ({ sessionId }: SessionKey) =>
  ({ pk }: Item): boolean =>
    String(pk).endsWith(`#${sessionId}`);

/** Text that no compression makes much smaller. */
export const noise = (seed: string, bytes: number): string => {
  let text = "";
  for (let n = 0; text.length < bytes; n++)
    text += createHash("sha512").update(`${seed} ${n}`).digest("base64");
  return text.slice(0, bytes);
};
