/** A DynamoDB that outlives every runner. */
import { join } from "node:path";
import { hasJava, startDynamoDbLocal } from "../../support/dynamodb-local.ts";
import { startProcess } from "./process.ts";

export interface Engine {
  readonly name: string;
  readonly endpoint: string;
  close(): Promise<void>;
}

/** DynamoDB Local where there is Java, and dynalite else, or where it is asked for. */
export const startEngine = async (isDynalite = !hasJava()): Promise<Engine> => {
  if (!isDynalite) return { name: "DynamoDB Local", ...(await startDynamoDbLocal()) };
  const { url, kill } = await startProcess([join(import.meta.dirname, "dynalite.ts")]);
  return { name: "dynalite", endpoint: url, close: kill };
};
