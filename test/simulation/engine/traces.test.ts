/** The same seed is the same run, whatever engine the table is of. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { dynamoTable, type Table } from "../../../lib/store/dynamodb/requests.ts";
import { dynamoClient, freshTable } from "../../support/dynamodb.ts";
import { CALM, type FaultOptions, STORMY } from "../faults.ts";
import { simulatedTable } from "../table.ts";
import { digest } from "./digest.ts";
import { type Run, runWorkload } from "./workload.ts";

const SEEDS = Array.from({ length: 50 }, (_, seed) => seed);

const stormy: FaultOptions = { ...STORMY, digest };

const simulated = (): Table => simulatedTable().asTable();

/** The SDK over the simulated table. */
const overTransport = (): Table =>
  dynamoTable(
    new DynamoDBClient({
      region: "us-east-1",
      credentials: { accessKeyId: "test", secretAccessKey: "test" },
      maxAttempts: 1,
      requestHandler: { ...simulatedTable().transport() },
    }),
    "any",
  );

const runSeed = (seed: number, table: Table, faults = stormy): Promise<Run> =>
  runWorkload({ table, faults, name: `run ${seed}`, seed });

test("a seed gives the same run twice", async () => {
  for (const seed of SEEDS) {
    expect(await runSeed(seed, simulated())).toEqual(await runSeed(seed, simulated()));
  }
});

test("a seed gives the same run through the SDK's client", { timeout: 120_000 }, async () => {
  const table = overTransport();
  for (const seed of SEEDS) {
    expect(await runSeed(seed, table)).toEqual(await runSeed(seed, simulated()));
  }
});

test("the choices of a run give it again, without its seed", async () => {
  for (const seed of SEEDS) {
    const run = await runSeed(seed, simulated());
    const { choices } = run;
    const again = runWorkload({ table: simulated(), faults: stormy, name: `run ${seed}`, choices });
    expect(await again).toEqual(run);
  }
});

test("without faults every call is one attempt, and all that is left to choose is their order", async () => {
  const run = await runSeed(1, simulated(), { ...CALM, digest });
  expect(run.trace.map(({ outcome }) => outcome)).not.toContainEqual(expect.stringContaining(":"));
  expect(run.choices.length).toBeLessThan(run.trace.length * 2);
});

test("in a storm everything happens that can", async () => {
  const outcomes = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    const { trace } = await runSeed(seed, simulated());
    for (const { outcome } of trace) outcomes.add(outcome.split(" ")[0] ?? "");
  }
  expect([...outcomes]).toEqual(
    expect.arrayContaining([
      ...["applied", "refused", "found", "nothing", "done", "unsent", "throttled", "kill"],
      ...["lost:", "late", "late:", "twice:", "slow:", "pause:", "kill:", "torn:"],
    ]),
  );
});

const local = inject("dynamodbLocal");

describe.skipIf(local === null)("on DynamoDB Local", () => {
  let table: Table;

  beforeAll(async () => {
    const { tableName } = await freshTable(local ?? "");
    table = dynamoTable(dynamoClient(local ?? ""), tableName);
  });

  test.each(SEEDS)("seed %i gives the same run as on the simulated table", async (seed) => {
    expect(await runSeed(seed, table)).toEqual(await runSeed(seed, simulated()));
  });
});
