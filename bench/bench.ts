/** What a turn costs on DynamoDB, as a session grows: `npm run bench -- [--turns 1,100,500] [--json]`. */
import { parseArgs } from "node:util";
import { createTable, readTableDefinition } from "../dev/table.ts";
import { hasJava, startDynamoDbLocal } from "../test/support/dynamodb-local.ts";
import { clientOn, meter } from "./meter.ts";
import { oneturnRows } from "./oneturn.ts";
import { referenceRows } from "./reference-rows.ts";
import { footnote, HEADER, lineOf } from "./report.ts";

const DEFAULT_TURNS = "1,10,100,500,5000";
const CPU_RUNS = 21;

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      turns: { type: "string", default: DEFAULT_TURNS },
      json: { type: "boolean", default: false },
    },
  });
  const turns = parseTurns(values.turns);
  if (!hasJava())
    throw new UsageError("The benchmark runs on DynamoDB Local, which needs Java 17.");

  const tableName = "bench";
  const local = await startDynamoDbLocal();
  const client = clientOn(local.endpoint);
  try {
    await createTable(client, tableName, readTableDefinition());
    const bench = { meter: meter(local.endpoint), client, tableName, turns, cpuRuns: CPU_RUNS };
    if (!values.json) console.log(HEADER);
    for (const rows of [oneturnRows(bench), referenceRows(bench)]) {
      for await (const row of rows) console.log(values.json ? JSON.stringify(row) : lineOf(row));
    }
    if (!values.json) console.log(footnote(CPU_RUNS));
  } finally {
    await local.close();
  }
};

const parseTurns = (text: string): number[] => {
  const turns = text.split(",").map(Number);
  if (turns.some((turn) => !Number.isSafeInteger(turn) || turn < 1)) {
    throw new UsageError(
      `--turns takes numbers of turns, such as ${DEFAULT_TURNS}, and not ${text}.`,
    );
  }
  return [...new Set(turns)].toSorted((a, b) => a - b);
};

class UsageError extends Error {}

main().catch((error: unknown) => {
  const isExplained = error instanceof UsageError;
  console.error(isExplained ? error.message : error);
  process.exitCode = 1;
});
