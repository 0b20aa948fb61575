/**
 * The one table, as serverless.yml defines it. Local engines get the very definition that is
 * deployed, so a key or an index can't differ between them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type AttributeDefinition,
  type BillingMode,
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  type GlobalSecondaryIndex,
  type KeySchemaElement,
  type Projection,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import {
  field,
  items,
  oneOf,
  readSetting,
  SERVERLESS_YML,
  type Setting,
  text,
} from "./serverless-yml.ts";

export type TableDefinition = {
  KeySchema: KeySchemaElement[];
  AttributeDefinitions: AttributeDefinition[];
  GlobalSecondaryIndexes: GlobalSecondaryIndex[];
  BillingMode: BillingMode;
  timeToLiveAttribute: string | null;
};

const ACTIVE_WITHIN_MS = 30_000;
const POLL_MS = 20;

export function readTableDefinition(serverlessYml: string = SERVERLESS_YML): TableDefinition {
  const resource = readSetting(serverlessYml, "resources", "Resources", "SessionsTable");
  oneOf(field(resource, "Type"), ["AWS::DynamoDB::Table"]);
  const properties = field(resource, "Properties");
  const timeToLive = field(properties, "TimeToLiveSpecification");
  return {
    KeySchema: keySchema(properties),
    AttributeDefinitions: items(field(properties, "AttributeDefinitions")).map((attribute) => ({
      AttributeName: text(field(attribute, "AttributeName")),
      AttributeType: oneOf(field(attribute, "AttributeType"), ["S", "N", "B"]),
    })),
    GlobalSecondaryIndexes: items(field(properties, "GlobalSecondaryIndexes")).map((index) => ({
      IndexName: text(field(index, "IndexName")),
      KeySchema: keySchema(index),
      Projection: projection(field(index, "Projection")),
    })),
    BillingMode: oneOf(field(properties, "BillingMode"), ["PAY_PER_REQUEST"]),
    timeToLiveAttribute:
      field(timeToLive, "Enabled").value === true ? text(field(timeToLive, "AttributeName")) : null,
  };
}

/** Creates the table where it isn't there yet; resolves when it can be used. May be repeated. */
export async function createTable(
  client: DynamoDBClient,
  tableName: string,
  definition: TableDefinition,
): Promise<void> {
  const { timeToLiveAttribute, ...schema } = definition;
  try {
    await client.send(new CreateTableCommand({ TableName: tableName, ...schema }));
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
  await untilActive(client, tableName);
  if (timeToLiveAttribute !== null) await setTimeToLive(client, tableName, timeToLiveAttribute);
}

function keySchema(owner: Setting): KeySchemaElement[] {
  return items(field(owner, "KeySchema")).map((key) => ({
    AttributeName: text(field(key, "AttributeName")),
    KeyType: oneOf(field(key, "KeyType"), ["HASH", "RANGE"]),
  }));
}

function projection(setting: Setting): Projection {
  const type = oneOf(field(setting, "ProjectionType"), ["ALL", "INCLUDE", "KEYS_ONLY"]);
  if (type !== "INCLUDE") return { ProjectionType: type };
  return {
    ProjectionType: type,
    NonKeyAttributes: items(field(setting, "NonKeyAttributes")).map(text),
  };
}

async function untilActive(client: DynamoDBClient, tableName: string): Promise<void> {
  const describe = new DescribeTableCommand({ TableName: tableName });
  for (let waitedMs = 0; waitedMs < ACTIVE_WITHIN_MS; waitedMs += POLL_MS) {
    const { Table: table } = await client.send(describe);
    const indexes = table?.GlobalSecondaryIndexes ?? [];
    const statuses = [table?.TableStatus, ...indexes.map((index) => index.IndexStatus)];
    if (statuses.every((status) => status === "ACTIVE")) return;
    await sleep(POLL_MS);
  }
  throw new Error(`Table ${tableName} is not active after ${ACTIVE_WITHIN_MS / 1000} s.`);
}

async function setTimeToLive(
  client: DynamoDBClient,
  tableName: string,
  attribute: string,
): Promise<void> {
  try {
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: tableName,
        TimeToLiveSpecification: { AttributeName: attribute, Enabled: true },
      }),
    );
  } catch (error) {
    // The embedded engine has no TTL. Nothing depends on it: an expired session is invisible at
    // once, and cleanup deletes it.
    if (hasName(error, "UnknownOperationException")) return;
    // What the service answers where it was set before.
    if (hasName(error, "ValidationException") && /already enabled/i.test(error.message)) return;
    throw error;
  }
}

function hasName(error: unknown, name: string): error is Error {
  return error instanceof Error && error.name === name;
}
