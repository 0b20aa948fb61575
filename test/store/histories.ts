/** What the tests of history on DynamoDB are made of. */
import { GetCommand } from "@aws-sdk/lib-dynamodb";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import { headKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { SessionKey } from "../../lib/store/head.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { type FreshTable, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { doneTurn, head, NOW_MS, randomText } from "../support/heads.ts";
import { sizeOf } from "./item-size.ts";
import { append, headOf } from "./open-turns.ts";

/** A store on a fresh table, whose requests are counted. */
export const openHistory = async (endpoint: string, cacheBytes?: number) => {
  const { client, tableName } = await freshTable(endpoint);
  const { client: counted, sent } = faultyClient(endpoint, () => undefined);
  const options = { tableName, ...(cacheBytes === undefined ? {} : { cacheBytes }) };
  const another = () => dynamoSessionStore({ client: counted, ...options });
  return { store: another(), another, sent, client, tableName };
};

/** A session with these turns, sealed as a runner seals. */
export const build = async (
  store: SessionStore,
  turns: readonly DoneTurn[],
): Promise<SessionKey> => {
  const it = head();
  await store.create({ head: it, nowMs: NOW_MS });
  const key = { owner: it.owner, sessionId: it.sessionId };
  for (const turn of turns) await append(store, key, turn);
  return key;
};

export const all = async (store: SessionStore, key: SessionKey): Promise<DoneTurn[]> => {
  const it = await headOf(store, key);
  return store.turns(it, { from: 1, to: it.version });
};

/** Of HEAD. */
export const itemBytes = async (
  { client, tableName }: FreshTable,
  key: SessionKey,
): Promise<number> => {
  const { Item: item = {} } = await client.send(
    new GetCommand({ TableName: tableName, Key: headKey(key) }),
  );
  return sizeOf(item);
};

export const turnOf = (n: number, bytes: number): DoneTurn =>
  doneTurn({
    turnId: `turn-${n}`,
    messages: [userMessage(`say ${n}`), assistantMessage(randomText(bytes))],
  });

/** In a row, of so many bytes each. */
export const turnsOf = (count: number, bytes: number): DoneTurn[] =>
  Array.from({ length: count }, (_, n) => turnOf(n + 1, bytes));
