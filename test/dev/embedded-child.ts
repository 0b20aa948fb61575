/** Stores one item in an embedded database on the folder given, and then closes it or goes on. */

import { DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { startEmbedded } from "../../dev/embedded.ts";
import { createTable, readTableDefinition } from "../../dev/table.ts";

const [dataDir = "", ending] = process.argv.slice(2);
const database = await startEmbedded({ dataDir });
const client = new DynamoDBClient({
  endpoint: database.endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
await createTable(client, "sessions", readTableDefinition());
await client.send(
  new PutItemCommand({ TableName: "sessions", Item: { pk: { S: "a" }, sk: { S: "HEAD" } } }),
);
console.log("stored");
// The client's sockets stay open: closing must not wait for them.
if (ending === "close") await database.close();
