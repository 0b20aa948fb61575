/** The DynamoDB engines that a test can run against, and fresh tables on them. */
import { randomUUID } from "node:crypto";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { afterAll, inject } from "vitest";
import { createTable, readTableDefinition } from "../../dev/table.ts";

export type DynamoEngine = { name: string; endpoint: string };

export type FreshTable = { client: DynamoDBDocumentClient; tableName: string };

/** For `describe.each`: DynamoDB Local is missing where there is no Java. */
export function dynamoEngines(): DynamoEngine[] {
  const local = inject("dynamodbLocal");
  return [
    { name: "dynalite", endpoint: inject("dynalite") },
    ...(local === null ? [] : [{ name: "DynamoDB Local", endpoint: local }]),
  ];
}

/** An empty table of its own, as serverless.yml defines it. The client is closed after the file. */
export async function freshTable(endpoint: string): Promise<FreshTable> {
  const client = dynamoClient(endpoint);
  const tableName = `test-${randomUUID()}`;
  await createTable(client, tableName, readTableDefinition());
  return { client: DynamoDBDocumentClient.from(client), tableName };
}

export function dynamoClient(endpoint: string): DynamoDBClient {
  const client = new DynamoDBClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  clients.push(client);
  return client;
}

const clients: DynamoDBClient[] = [];

afterAll(() => {
  for (const client of clients.splice(0)) client.destroy();
});
