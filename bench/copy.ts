import { randomBytes } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { BatchWriteCommand, DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { SessionKey } from "../lib/store/head.ts";
import { partitionKey } from "../lib/store/keys.ts";

export interface Table {
  readonly client: DynamoDBClient;
  readonly tableName: string;
}

/**
 * The same session under another id, item by item and with its incarnation: what a process has
 * cached of the one holds for the other.
 */
export const copySession = async (
  { client, tableName }: Table,
  key: SessionKey,
): Promise<SessionKey> => {
  const documents = DynamoDBDocumentClient.from(client);
  const copy = { owner: key.owner, sessionId: randomBytes(6).toString("hex") };
  const pages = paginateQuery(
    { client: documents },
    {
      TableName: tableName,
      KeyConditionExpression: "pk = :pk",
      ExpressionAttributeValues: { ":pk": partitionKey(key) },
      ConsistentRead: true,
    },
  );
  for await (const { Items = [] } of pages) {
    const puts = Items.map((item) => ({
      PutRequest: {
        Item: {
          ...item,
          pk: partitionKey(copy),
          ...(item["sk"] === "HEAD" ? { session_id: copy.sessionId } : {}),
        },
      },
    }));
    while (puts.length > 0) {
      const command = new BatchWriteCommand({
        RequestItems: { [tableName]: puts.splice(0, BATCH_SIZE) },
      });
      const { UnprocessedItems = {} } = await documents.send(command);
      if (Object.keys(UnprocessedItems).length > 0)
        throw new Error("the table left a write undone");
    }
  }
  return copy;
};

/** DynamoDB's limit for one BatchWriteItem. */
const BATCH_SIZE = 25;
