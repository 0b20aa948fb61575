/** What the tests of open turns on DynamoDB are made of. */
import { DeleteCommand, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { headKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import type { Head, SessionKey } from "../../lib/store/head.ts";
import { partitionKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { openTurn } from "../support/heads.ts";
import { keep, noise, running, step, stepWith } from "./open-turns.ts";

/** A store on a fresh table, and hands on what lies in the table. */
export const openPieces = async (endpoint: string) => {
  const { client, tableName } = await freshTable(endpoint);
  const { client: counted, sent } = faultyClient(endpoint, () => undefined);
  const itemOf = async (key: SessionKey): Promise<Item> => {
    const Key = headKey(key);
    const { Item: item = {} } = await client.send(new GetCommand({ TableName: tableName, Key }));
    return item;
  };
  /** Whatever lies beside HEAD, in the order of its keys. */
  const besides = async (key: SessionKey, prefix = ""): Promise<Item[]> => {
    const { Items: items = [] } = await client.send(
      new QueryCommand({
        TableName: tableName,
        KeyConditionExpression: "pk = :pk",
        ExpressionAttributeValues: { ":pk": partitionKey(key) },
        ConsistentRead: true,
      }),
    );
    return items.filter(({ sk }) => sk !== "HEAD" && String(sk).startsWith(prefix));
  };
  const remove = async (item: Item | undefined): Promise<void> => {
    const Key = { pk: item?.["pk"], sk: item?.["sk"] };
    await client.send(new DeleteCommand({ TableName: tableName, Key }));
  };
  const put = async (item: Item): Promise<void> => {
    await client.send(new PutCommand({ TableName: tableName, Item: item }));
  };
  const another = () => dynamoSessionStore({ client: counted, tableName });
  return {
    store: another(),
    another,
    counted,
    sent,
    itemOf,
    besides,
    remove,
    put,
  };
};

/** A turn with a large input, a large step and large results. */
export const large = async (store: SessionStore): Promise<Head> => {
  const it = await running(store, {}, { open: openTurn({ input: noise(9000) }) });
  await store.saveInput(it, noise(9000));
  const asked = await keep(store, it, { steps: [step(null), stepWith(noise(9000, 2), [])] });
  return keep(store, asked, { step: 0, results: [noise(9000, 3)] });
};
