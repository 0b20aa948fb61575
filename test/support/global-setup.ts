/** Starts the DynamoDB engines once for the whole run and tells the tests where they are. */
import type { TestProject } from "vitest/node";
import { startEmbedded } from "../../dev/embedded.ts";
import { hasJava, startDynamoDbLocal } from "./dynamodb-local.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The endpoint of the embedded engine, in memory. */
    dynalite: string;
    /** The endpoint of DynamoDB Local; null where there is no Java. */
    dynamodbLocal: string | null;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const isLocalThere = hasJava();
  if (!isLocalThere) {
    // A run that silently left the reference engine out would pass for a full one.
    if (process.env["CI"] === "true") throw new Error("The tests need Java for DynamoDB Local.");
    console.log("There is no Java: the DynamoDB Local suites are skipped.");
  }
  const embedded = await startEmbedded();
  const local = isLocalThere ? await startDynamoDbLocal() : null;
  project.provide("dynalite", embedded.endpoint);
  project.provide("dynamodbLocal", local?.endpoint ?? null);
  return async () => {
    await Promise.all([embedded.close(), local?.close()]);
  };
}
