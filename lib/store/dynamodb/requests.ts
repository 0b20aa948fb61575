/** The requests that the store makes of its table, with errors in our own terms. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  type QueryCommandInput,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { StoreThrottledError } from "../errors.ts";
import { type Change, expressions } from "./expressions.ts";
import { numbersAsWritten, refusedItem, translate } from "./failures.ts";
import type { Item } from "./table.ts";

/** Every method rejects with a `StoreUnavailableError` where the table gives no answer. */
export interface Table {
  read(key: Item, consistent?: boolean): Promise<Item | undefined>;
  query(
    input: Omit<QueryCommandInput, "TableName">,
  ): Promise<{ items: Item[]; next: Item | undefined }>;
  /** What a query gives on all its pages. */
  items(input: Omit<QueryCommandInput, "TableName">): AsyncIterable<Item>;
  /** Up to 100, eventually consistent; those that aren't there are left out. */
  readAll(keys: readonly Item[]): Promise<Item[]>;
  put(item: Item): Promise<void>;
  putIf(item: Item, change: Change): Promise<Written>;
  /** Brings the item as it then is. */
  update(key: Item, change: Change): Promise<Written>;
  /** As `update`, for who needn't see the item. */
  change(key: Item, change: Change): Promise<Written>;
  /** Items whose content follows from their key, so that it doesn't matter how often they are written. */
  putAll(items: readonly Item[]): Promise<void>;
  deleteAll(keys: readonly Item[]): Promise<void>;
  deleteIf(item: Item, change: Change): Promise<Written>;
}

export type Written =
  | { readonly applied: true; readonly item: Item }
  /** With what stands there, read consistently where the engine doesn't send it. */
  | { readonly applied: false; readonly seen: Item | undefined };

export const dynamoTable = (client: DynamoDBClient, TableName: string): Table => {
  const documents = DynamoDBDocumentClient.from(client, { unmarshallOptions: numbersAsWritten() });

  const read: Table["read"] = async (Key, ConsistentRead = true) => {
    const { Item: item } = await documents
      .send(new GetCommand({ TableName, Key, ConsistentRead }))
      .catch(translate);
    return item;
  };

  const conditional = async (
    key: Item,
    write: () => Promise<{ Attributes?: Item | undefined }>,
  ): Promise<Written> => {
    try {
      return { applied: true, item: (await write()).Attributes ?? {} };
    } catch (error) {
      return { applied: false, seen: refusedItem(error) ?? (await read(key)) };
    }
  };

  const updates =
    (ReturnValues: "ALL_NEW" | "NONE") =>
    (Key: Item, change: Change): Promise<Written> =>
      conditional(Key, () =>
        documents.send(new UpdateCommand({ TableName, Key, ...expressions(change), ReturnValues })),
      );

  const batch = async (requests: readonly WriteRequest[]): Promise<void> => {
    let left = [...requests];
    for (let tries = 0; left.length > 0; tries++) {
      if (tries > MAX_IDLE_TRIES)
        throw new StoreThrottledError("DynamoDB leaves writes of a batch undone");
      if (tries > 0) await new Promise((resolve) => setTimeout(resolve, 50 * 2 ** tries));
      const now = left.splice(0, BATCH_SIZE);
      const command = new BatchWriteCommand({ RequestItems: { [TableName]: now } });
      const { UnprocessedItems = {} } = await documents.send(command).catch(translate);
      const undone = UnprocessedItems[TableName] ?? [];
      if (undone.length < now.length) tries = -1;
      left = [...undone, ...left];
    }
  };

  const query: Table["query"] = async (input) => {
    const page = await documents.send(new QueryCommand({ TableName, ...input })).catch(translate);
    return { items: page.Items ?? [], next: page.LastEvaluatedKey };
  };

  return {
    read,
    query,
    items: itemsOf(query),
    readAll: async (keys) => {
      const items: Item[] = [];
      for (let left = [...keys], tries = 0; left.length > 0; tries++) {
        if (tries > MAX_IDLE_TRIES)
          throw new StoreThrottledError("DynamoDB leaves reads of a batch undone");
        const command = new BatchGetCommand({ RequestItems: { [TableName]: { Keys: left } } });
        const { Responses = {}, UnprocessedKeys = {} } = await documents
          .send(command)
          .catch(translate);
        const found = Responses[TableName] ?? [];
        if (found.length > 0) tries = -1;
        items.push(...found);
        left = UnprocessedKeys[TableName]?.Keys ?? [];
      }
      return items;
    },
    put: async (item) => {
      await documents.send(new PutCommand({ TableName, Item: item })).catch(translate);
    },
    putIf: (item, change) =>
      conditional(primaryKey(item), () =>
        documents.send(new PutCommand({ TableName, Item: item, ...expressions(change) })),
      ),
    update: updates("ALL_NEW"),
    change: updates("NONE"),
    putAll: (items) => batch(items.map((item) => ({ PutRequest: { Item: item } }))),
    deleteAll: (keys) => batch(keys.map((key) => ({ DeleteRequest: { Key: primaryKey(key) } }))),
    deleteIf: (item, change) => {
      const Key = primaryKey(item);
      return conditional(Key, () =>
        documents.send(new DeleteCommand({ TableName, Key, ...expressions(change) })),
      );
    },
  };
};

/** All pages of a query, one after the other. */
export const itemsOf = (query: Table["query"]): Table["items"] =>
  async function* (input) {
    let start: Item | undefined;
    do {
      const page = await query({ ...input, ...(start ? { ExclusiveStartKey: start } : {}) });
      yield* page.items;
      start = page.next;
    } while (start);
  };

type WriteRequest = NonNullable<
  NonNullable<BatchWriteCommandInput["RequestItems"]>[string]
>[number];

/** DynamoDB's limit for one BatchWriteItem. */
const BATCH_SIZE = 25;

/** In a row, in which nothing was done. */
const MAX_IDLE_TRIES = 4;

const primaryKey = ({ pk, sk }: Item): Item => ({ pk, sk });
