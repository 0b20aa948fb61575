import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
} from "@aws-sdk/client-dynamodb";
import { describe, expect, test } from "vitest";
import { createTable, readTableDefinition } from "../../dev/table.ts";
import { dynamoClient, dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { temporaryFolder } from "./folder.ts";

const YML = `
resources:
  Resources:
    AlarmTopic: { Type: AWS::SNS::Topic }
    SessionsTable:
      Type: AWS::DynamoDB::Table
      DeletionPolicy: Retain
      Properties:
        TableName: !Sub "\${AWS::StackName}-sessions"
        BillingMode: PAY_PER_REQUEST
        KeySchema:
          - { AttributeName: pk, KeyType: HASH }
          - { AttributeName: sk, KeyType: RANGE }
        AttributeDefinitions:
          - { AttributeName: pk, AttributeType: S }
          - { AttributeName: sk, AttributeType: S }
          - { AttributeName: expiry_shard, AttributeType: N }
          - { AttributeName: expires_at, AttributeType: N }
        GlobalSecondaryIndexes:
          - IndexName: by_expiry
            KeySchema:
              - { AttributeName: expiry_shard, KeyType: HASH }
              - { AttributeName: expires_at, KeyType: RANGE }
            Projection: { ProjectionType: INCLUDE, NonKeyAttributes: [version] }
        TimeToLiveSpecification: { AttributeName: expires_at, Enabled: true }
`;

async function ymlFile(text: string): Promise<string> {
  const file = join(await temporaryFolder(), "serverless.yml");
  await writeFile(file, text);
  return file;
}

describe("the definition", () => {
  test("is what the resource SessionsTable says, without what only CloudFormation needs", async () => {
    expect(readTableDefinition(await ymlFile(YML))).toEqual({
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      AttributeDefinitions: [
        { AttributeName: "pk", AttributeType: "S" },
        { AttributeName: "sk", AttributeType: "S" },
        { AttributeName: "expiry_shard", AttributeType: "N" },
        { AttributeName: "expires_at", AttributeType: "N" },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: "by_expiry",
          KeySchema: [
            { AttributeName: "expiry_shard", KeyType: "HASH" },
            { AttributeName: "expires_at", KeyType: "RANGE" },
          ],
          Projection: { ProjectionType: "INCLUDE", NonKeyAttributes: ["version"] },
        },
      ],
      timeToLiveAttribute: "expires_at",
    });
  });

  test("has no TTL attribute where the TTL is not enabled", async () => {
    const file = await ymlFile(YML.replace("Enabled: true", "Enabled: false"));
    expect(readTableDefinition(file).timeToLiveAttribute).toBeNull();
  });

  test.each([
    ["no such resource", YML.replace("SessionsTable:", "Other:"), /SessionsTable, Type: .*nothing/],
    ["another type", YML.replace("DynamoDB::Table", "SQS::Queue"), /found "AWS::SQS::Queue"/],
    [
      "an unknown key type",
      YML.replace("KeyType: RANGE", "KeyType: SORT"),
      /KeySchema, 1, KeyType/,
    ],
    ["no attributes", YML.replace("AttributeDefinitions", "X"), /AttributeDefinitions: .* a list/],
    ["an empty file", "", /SessionsTable, Type/],
  ])("names the place at fault: %s", async (_, yml, message) => {
    const file = await ymlFile(yml);
    expect(() => readTableDefinition(file)).toThrow(message);
    expect(() => readTableDefinition(file)).toThrow(file);
  });

  test("is there in the project's own serverless.yml, with both indexes and the TTL", () => {
    const definition = readTableDefinition();
    expect(definition.KeySchema.map((key) => key.AttributeName)).toEqual(["pk", "sk"]);
    const indexes = definition.GlobalSecondaryIndexes.map((index) => index.IndexName);
    expect(new Set(indexes)).toEqual(new Set(["by_owner", "by_expiry"]));
    expect(definition.timeToLiveAttribute).toBe("expires_at");
  });
});

describe.each(dynamoEngines())("on $name", ({ endpoint }) => {
  test("the project's table is active and takes items, indexes included", async () => {
    const { client, tableName } = await freshTable(endpoint);
    await client.send(
      new PutItemCommand({
        TableName: tableName,
        Item: {
          pk: { S: "a" },
          sk: { S: "HEAD" },
          owner: { S: "ann" },
          created_key: { S: "2026" },
          expiry_shard: { N: "1" },
          expires_at: { N: "4000000000" },
        },
      }),
    );
    const found = await client.send(
      new QueryCommand({
        TableName: tableName,
        IndexName: "by_expiry",
        KeyConditionExpression: "expiry_shard = :shard",
        ExpressionAttributeValues: { ":shard": { N: "1" } },
      }),
    );
    expect(found.Items).toEqual([
      {
        pk: { S: "a" },
        sk: { S: "HEAD" },
        expiry_shard: { N: "1" },
        expires_at: { N: "4000000000" },
      },
    ]);
  });

  test("creating it again leaves the table and its items", async () => {
    const { client, tableName } = await freshTable(endpoint);
    const key = { pk: { S: "a" }, sk: { S: "HEAD" } };
    await client.send(new PutItemCommand({ TableName: tableName, Item: key }));
    await createTable(dynamoClient(endpoint), tableName, readTableDefinition());
    const { Item } = await client.send(new GetItemCommand({ TableName: tableName, Key: key }));
    expect(Item).toEqual(key);
  });

  test("two creators at once both end with the table active", async () => {
    const client = dynamoClient(endpoint);
    const definition = readTableDefinition(await ymlFile(YML));
    const tableName = `twice-${crypto.randomUUID()}`;
    await Promise.all([
      createTable(client, tableName, definition),
      createTable(client, tableName, definition),
    ]);
    const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
    expect(Table?.TableStatus).toBe("ACTIVE");
  });
});

const withTimeToLive = dynamoEngines().filter(({ name }) => name === "DynamoDB Local");
describe.each(withTimeToLive)("on $name, which has a TTL", ({ endpoint }) => {
  test("it is set on the attribute that serverless.yml names (T05)", async () => {
    const { client, tableName } = await freshTable(endpoint);
    const answer = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
    expect(answer.TimeToLiveDescription).toEqual({
      AttributeName: "expires_at",
      TimeToLiveStatus: "ENABLED",
    });
  });
});
