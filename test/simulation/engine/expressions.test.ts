/** The simulated table against DynamoDB Local: the same item and the same request, by chance, give the same. */
import fc from "fast-check";
import { beforeAll, describe, expect, inject, test } from "vitest";
import type { Change } from "../../../lib/store/dynamodb/expressions.ts";
import { dynamoTable, type Table } from "../../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { dynamoClient, freshTable } from "../../support/dynamodb.ts";
import { simulatedTable } from "../table.ts";
import { anyChange, anyCondition, anyItem, anyValues } from "./arbitraries.ts";
import { outcomeOf } from "./outcome.ts";

const KEY = { pk: "p", sk: "s" };

const local = inject("dynamodbLocal");

describe.skipIf(local === null)("beside DynamoDB Local", { timeout: 120_000 }, () => {
  const simulated = simulatedTable().asTable();
  let real: Table;

  beforeAll(async () => {
    const { tableName } = await freshTable(local ?? "");
    real = dynamoTable(dynamoClient(local ?? ""), tableName);
  });

  /** Gives how often each outcome came. */
  const compare = async (change: fc.Arbitrary<Change>): Promise<Record<string, number>> => {
    const counts = { applied: 0, failed: 0, refused: 0 };
    const given = fc.record({ item: anyItem, change });
    const check = async ({ item, change }: { item: Item; change: Change }): Promise<void> => {
      const act = async (table: Table) => {
        await table.put({ ...KEY, ...item });
        return table.update(KEY, change);
      };
      const [outcome, expected] = await Promise.all([
        outcomeOf(simulated, act),
        outcomeOf(real, act),
      ]);
      expect(outcome).toEqual(expected);
      counts[outcome === "refused" ? outcome : outcome.applied ? "applied" : "failed"]++;
    };
    await fc.assert(fc.asyncProperty(given, check), { numRuns: 300 });
    return counts;
  };

  test("conditions hold, fail and are refused alike", async () => {
    const condition = fc.tuple(anyCondition);
    const { applied, failed, refused } = await compare(fc.record({ condition, values: anyValues }));
    expect(Math.min(applied ?? 0, failed ?? 0, refused ?? 0)).toBeGreaterThan(20);
  });

  test("updates give the same item, or are refused alike", async () => {
    const { applied, refused } = await compare(anyChange);
    expect(Math.min(applied ?? 0, refused ?? 0)).toBeGreaterThan(40);
  });
});
