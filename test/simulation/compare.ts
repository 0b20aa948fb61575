/** Runs of the same seeds on all engines: they have to be the same, request by request. */
import { isDeepStrictEqual } from "node:util";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { startDynamoDbLocal } from "../support/dynamodb-local.ts";
import { engineOn, runOn, sdkEngine, simulatedEngine } from "./engines.ts";

/** The seeds that didn't give the same run everywhere, each with the engine that differs. */
export const compare = async (seeds: Iterable<number>): Promise<string[]> => {
  const local = await startDynamoDbLocal();
  const client = new DynamoDBClient({
    endpoint: local.endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
  const engines = {
    "the SDK's client": sdkEngine,
    "DynamoDB Local": engineOn(client),
  };
  const differing: string[] = [];
  try {
    for (const seed of seeds) {
      const expected = await runOn(simulatedEngine, seed);
      for (const [name, engine] of Object.entries(engines)) {
        const isSame = isDeepStrictEqual(await runOn(engine, seed), expected);
        if (!isSame) differing.push(`seed ${seed} on ${name}`);
      }
    }
  } finally {
    client.destroy();
    await local.close();
  }
  return differing;
};
