/** Single requests of the SDK's client, on the simulated table and on DynamoDB Local. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  BatchGetCommand,
  BatchWriteCommand,
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  UpdateCommand,
  type UpdateCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type FreshTable, freshTable } from "../../support/dynamodb.ts";
import { simulatedTable } from "../table.ts";

const overTransport = async (): Promise<FreshTable> => {
  const client = new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    requestHandler: { ...simulatedTable().transport() },
  });
  return { client: DynamoDBDocumentClient.from(client), tableName: "any" };
};

const local = inject("dynamodbLocal");

const engines = [
  { name: "the simulated table", open: overTransport },
  ...(local === null ? [] : [{ name: "DynamoDB Local", open: () => freshTable(local) }]),
];

const KEY = { pk: "p", sk: "s" };
const ITEM = { ...KEY, n: 1, t: "text", k: { x: 1 }, l: [1, "2", null, true], b: Uint8Array.of(1) };

describe.each(engines)("on $name", ({ open }) => {
  let TableName: string;
  let client: DynamoDBDocumentClient;

  beforeAll(async () => {
    ({ client, tableName: TableName } = await open());
  });

  beforeEach(async () => {
    await client.send(new PutCommand({ TableName, Item: ITEM }));
  });

  const nameOfRefusal = async (sent: Promise<unknown>): Promise<string> =>
    sent.then(
      () => "none",
      (error: unknown) => (error as Error).name,
    );

  const update = (
    UpdateExpression: string,
    values: Record<string, unknown> = {},
    more: Partial<UpdateCommandInput> = {},
  ) =>
    client.send(
      new UpdateCommand({
        TableName,
        Key: KEY,
        UpdateExpression,
        ...(Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}),
        ReturnValues: "ALL_NEW",
        ...more,
      }),
    );

  test("an item comes back as it went in", async () => {
    const { Item } = await client.send(new GetCommand({ TableName, Key: KEY }));
    expect(Item).toEqual(ITEM);
    const other = await client.send(new GetCommand({ TableName, Key: { pk: "p", sk: "other" } }));
    expect(other.Item).toBeUndefined();
  });

  test("an update makes the item where there is none", async () => {
    const { Attributes } = await update("SET n = :n", { ":n": 2 }, { Key: { pk: "p", sk: "new" } });
    expect(Attributes).toEqual({ pk: "p", sk: "new", n: 2 });
  });

  test("a failed condition brings the item, where it is asked for and there is one", async () => {
    const failing = {
      ConditionExpression: "n = :two",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
    };
    const values = { ":two": 2 };
    const seen = async (sent: Promise<unknown>): Promise<unknown> => {
      const error = (await sent.catch((error: unknown) => error)) as { name: string; Item?: never };
      return [error.name, error.Item && unmarshall(error.Item)];
    };
    const failed = "ConditionalCheckFailedException";
    expect(await seen(update("SET n = :two", values, failing))).toEqual([failed, ITEM]);
    const { ReturnValuesOnConditionCheckFailure: _, ...bare } = failing;
    expect(await seen(update("SET n = :two", values, bare))).toEqual([failed, undefined]);
    const missing = { Key: { pk: "p", sk: "gone" }, ...failing };
    expect(await seen(update("SET n = :two", values, missing))).toEqual([failed, undefined]);
    const request = { TableName, ...failing, ExpressionAttributeValues: values };
    const put = client.send(new PutCommand({ ...request, Item: { ...KEY, n: 3 } }));
    expect(await seen(put)).toEqual([failed, ITEM]);
    const deletion = client.send(new DeleteCommand({ ...request, Key: KEY }));
    expect(await seen(deletion)).toEqual([failed, ITEM]);
    expect((await client.send(new GetCommand({ TableName, Key: KEY }))).Item).toEqual(ITEM);
  });

  test("batches write, delete and read many", async () => {
    const items = [1, 2, 3].map((n) => ({ pk: "batch", sk: `${n}`, n }));
    const keys = items.map(({ pk, sk }) => ({ pk, sk }));
    const write = (requests: NonNullable<BatchWriteCommand["input"]["RequestItems"]>[string]) =>
      client.send(new BatchWriteCommand({ RequestItems: { [TableName]: requests } }));
    await write(items.map((Item) => ({ PutRequest: { Item } })));
    await write([{ DeleteRequest: { Key: { pk: "batch", sk: "2" } } }]);
    const { Responses } = await client.send(
      new BatchGetCommand({ RequestItems: { [TableName]: { Keys: keys } } }),
    );
    const found = Responses?.[TableName] ?? [];
    expect(new Set(found.map(({ n }) => Number(n)))).toEqual(new Set([1, 3]));
  });

  test.each<[string, Parameters<typeof update>]>([
    ["an unused name", ["SET n = :v", { ":v": 1 }, { ExpressionAttributeNames: { "#x": "x" } }]],
    ["an unused value", ["SET n = :v", { ":v": 1, ":w": 1 }]],
    ["a missing value", ["SET n = :v"]],
    ["a value that is undefined", ["SET n = :v, t = :w", { ":v": undefined, ":w": 1 }]],
    ["a missing name", ["SET #n = :v", { ":v": 1 }]],
    ["no values at all", ["REMOVE n", {}, { ExpressionAttributeValues: {} }]],
    ["a change of the key", ["SET pk = :v", { ":v": "q" }]],
    ["a removal of the key", ["REMOVE sk"]],
    ["paths that overlap", ["SET k = :v, k.x = :v", { ":v": 1 }]],
    ["a path that is set twice", ["SET n = :v, n = :v", { ":v": 1 }]],
    ["paths of a list and a map", ["SET k.x = :v, k[0] = :v", { ":v": 1 }]],
    ["a missing parent", ["SET gone.x = :v", { ":v": 1 }]],
    ["a parent that is no map", ["SET n.x = :v", { ":v": 1 }]],
    ["the removal of what has no parent", ["REMOVE gone.x"]],
    ["an operand that isn't there", ["SET n = gone + :v", { ":v": 1 }]],
    ["a sum with text", ["SET n = t + :v", { ":v": 1 }]],
    ["a list appended to a number", ["SET n = list_append(n, :v)", { ":v": [] }]],
    ["two sections of one kind", ["SET n = :v SET t = :v", { ":v": 1 }]],
    ["words that mean nothing", ["SET n = :v please", { ":v": 1 }]],
    ["half an expression", ["SET n ="]],
    ["double parentheses", ["REMOVE n", { ":v": 1 }, { ConditionExpression: "((n = :v))" }]],
    [
      "bounds in the wrong order",
      ["REMOVE t", { ":v": 1, ":w": 0 }, { ConditionExpression: "n BETWEEN :v AND :w" }],
    ],
    ["an index key of another type", ["SET expires_at = :v", { ":v": "1" }]],
    ["an empty index key", ["SET created_key = :v", { ":v": "" }]],
    ["a key without its second half", ["REMOVE n", {}, { Key: { pk: "p" } }]],
    ["a key with more than a key", ["REMOVE n", {}, { Key: { ...KEY, n: 1 } }]],
    ["an empty key", ["REMOVE n", {}, { Key: { pk: "", sk: "s" } }]],
  ])("%s is refused, and nothing is changed", async (_what, given) => {
    expect(await nameOfRefusal(update(...given))).toBe("ValidationException");
    expect((await client.send(new GetCommand({ TableName, Key: KEY }))).Item).toEqual(ITEM);
  });

  test.each<[string, Parameters<typeof update>, unknown]>([
    [
      "beyond the end, in their order",
      ["SET l[9] = :v, l[7] = :w", { ":v": 9, ":w": 7 }],
      [1, 2, 3, 7, 9],
    ],
    ["beside what is removed", ["SET l[1] = :v REMOVE l[0]", { ":v": 9 }], [9, 3]],
    ["beyond the end of what is removed", ["SET l[3] = :v REMOVE l[0], l[1]", { ":v": 9 }], [3, 9]],
    ["in place of nothing that was removed", ["REMOVE l[9], l[2], l[0]"], [2]],
    ["behind others", ["SET l = list_append(l, :v)", { ":v": [4] }], [1, 2, 3, 4]],
    ["before others", ["SET l = list_append(:v, l)", { ":v": [4] }], [4, 1, 2, 3]],
    ["as they were before", ["SET l[0] = l[1], l[1] = l[0]"], [2, 1, 3]],
  ])("elements of a list stand %s", async (_where, given, expected) => {
    await client.send(new PutCommand({ TableName, Item: { ...KEY, l: [1, 2, 3] } }));
    expect((await update(...given)).Attributes).toEqual({ ...KEY, l: expected });
  });

  test("a condition that fails comes before what an update finds wrong in the item", async () => {
    const failing = update("SET gone.x = :v", { ":v": 2 }, { ConditionExpression: "n = :v" });
    expect(await nameOfRefusal(failing)).toBe("ConditionalCheckFailedException");
  });

  test.each<[string, Partial<QueryCommand["input"]>]>([
    ["of an index that doesn't exist", { IndexName: "by_nothing" }],
    ["of an index, consistently", { IndexName: "by_owner", ConsistentRead: true }],
    ["of any partition", { KeyConditionExpression: "sk = :p" }],
    ["of a range of partitions", { KeyConditionExpression: "pk > :p" }],
    ["by what is no key", { KeyConditionExpression: "pk = :p AND n = :p" }],
    ["from a place in another partition", { ExclusiveStartKey: { pk: "q", sk: "s" } }],
    ["from a place that is none", { ExclusiveStartKey: { pk: "p" } }],
    ["that filters by its key", { FilterExpression: "sk = :p" }],
  ])("a query %s is refused", async (_what, more) => {
    const query = {
      TableName,
      KeyConditionExpression: more.IndexName ? "#owner = :p" : "pk = :p",
      ExpressionAttributeValues: { ":p": "p" },
      ...(more.IndexName ? { ExpressionAttributeNames: { "#owner": "owner" } } : {}),
      ...more,
    };
    expect(await nameOfRefusal(client.send(new QueryCommand(query)))).toBe("ValidationException");
  });
});
