/** The same run on three tables: the simulated one, the SDK's client over it, and DynamoDB Local. */
import { randomUUID } from "node:crypto";
import { DeleteTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createTable, readTableDefinition } from "../../dev/table.ts";
import { dynamoTable, type Table } from "../../lib/store/dynamodb/requests.ts";
import { digest } from "./engine/digest.ts";
import { type Run, simulate } from "./simulate.ts";
import { simulatedTable } from "./table.ts";

/** Runs something on a table of its own, empty and the only one. */
export type Engine = <T>(work: (table: Table) => Promise<T>) => Promise<T>;

export const simulatedEngine: Engine = (work) => work(simulatedTable().asTable());

export const sdkEngine: Engine = (work) => {
  const client = new DynamoDBClient({
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: { ...simulatedTable().transport() },
  });
  return work(dynamoTable(client, "any"));
};

export const engineOn =
  (client: DynamoDBClient): Engine =>
  async (work) => {
    const TableName = `simulated-${randomUUID()}`;
    await createTable(client, TableName, readTableDefinition());
    try {
      return await work(dynamoTable(client, TableName));
    } finally {
      await client.send(new DeleteTableCommand({ TableName }));
    }
  };

/** What of a run has to be the same on every engine. */
export const runOn = async (
  engine: Engine,
  seed: number,
): Promise<Pick<Run, "trace" | "choices" | "violations">> => {
  const { trace, choices, violations } = await engine((table) => simulate({ seed, table, digest }));
  return { trace, choices, violations };
};
