/** Queries of the simulated table against DynamoDB Local: the same items and the same query give the same pages. */
import fc from "fast-check";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { dynamoTable, type Table } from "../../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { dynamoClient, freshTable } from "../../support/dynamodb.ts";
import { simulatedTable } from "../table.ts";
import { outcomeOf } from "./outcome.ts";

type Query = Parameters<Table["query"]>[0];

const local = inject("dynamodbLocal");

describe.skipIf(local === null)("beside DynamoDB Local", { timeout: 120_000 }, () => {
  const simulated = simulatedTable().asTable();
  let real: Table;
  let runs = 0;

  beforeAll(async () => {
    const { tableName } = await freshTable(local ?? "");
    real = dynamoTable(dynamoClient(local ?? ""), tableName);
  });

  test("the pages of a query are the same, in the same order", async () => {
    await fc.assert(
      fc.asyncProperty(
        anyItems,
        fc.array(anyQuestion, { minLength: 3, maxLength: 3 }),
        async (items, questions) => {
          const run = ++runs;
          const own = items.map((item) => ({
            pk: `run ${run}`,
            ...item,
            ...("owner" in item ? { owner: `run ${run}` } : {}),
            ...("expiry_shard" in item ? { expiry_shard: run } : {}),
          }));
          await Promise.all([simulated.putAll(own), real.putAll(own)]);
          for (const query of questions.map((question) => queryOf(question, run))) {
            const [pages, expected] = await Promise.all([
              outcomeOf(simulated, (table) => pagesOf(table, query)),
              outcomeOf(real, (table) => pagesOf(table, query)),
            ]);
            expect(pages).toEqual(expected);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

const pagesOf = async (table: Table, query: Query): Promise<Item[][]> => {
  const pages: Item[][] = [];
  for (let start: Item | undefined, isFirst = true; isFirst || start; isFirst = false) {
    const page = await table.query({ ...query, ...(start ? { ExclusiveStartKey: start } : {}) });
    pages.push(page.items);
    start = page.next;
  }
  return pages;
};

/** Their order in UTF-8 isn't that of their UTF-16 units. */
const SORT_KEYS = ["HEAD", "S#1", "S#10", "S#2", "T#a", "\u{ffee}", "😀"];

/** Values by which an index sorts are all different: DynamoDB promises no order of equal ones. */
const anyItems = fc
  .uniqueArray(fc.constantFrom(...SORT_KEYS), { minLength: 1 })
  .chain((keys) => fc.tuple(...keys.map((sk, n) => anyItem(sk, n))));

const anyItem = (sk: string, n: number): fc.Arbitrary<Item> =>
  fc.record(
    {
      sk: fc.constant(sk),
      owner: fc.constant(""),
      created_key: fc.integer({ min: 0, max: 3 }).map((day) => `${day}#${sk}`),
      expiry_shard: fc.constant(0),
      expires_at: fc.integer({ min: 0, max: 3 }).map((day) => day * 100 + n),
      session_id: fc.constant(`s${n}`),
      data: fc.uint8Array({ maxLength: 3 }),
    },
    { requiredKeys: ["sk"] },
  );

/** Which items, in which attribute the sort key lies, and of what kind its values are. */
const KEYS = [
  { names: { "#p": "pk", "#s": "sk" }, of: (run: number) => `run ${run}`, values: ["S#", "S#10"] },
  {
    IndexName: "by_owner",
    names: { "#p": "owner", "#s": "created_key" },
    of: (run: number) => `run ${run}`,
    values: ["1", "2#S#10"],
  },
  {
    IndexName: "by_expiry",
    names: { "#p": "expiry_shard", "#s": "expires_at" },
    of: (run: number) => run,
    values: [101, 203],
  },
] as const;

const anyQuestion = fc.record({
  key: fc.constantFrom(...KEYS),
  sort: fc.constantFrom(
    ...["", "#s = :b", "#s < :b", "#s <= :b", "#s > :a", "#s >= :a", "#s BETWEEN :a AND :b"],
    "begins_with(#s, :a)",
  ),
  filter: fc.constantFrom(undefined, "attribute_exists(#f)", "size(#f) < :size"),
  projection: fc.constantFrom(undefined, "#s, #f"),
  limit: fc.constantFrom(undefined, 1, 2, 3, 7),
  isForward: fc.constantFrom(undefined, true, false),
});

type Question = typeof anyQuestion extends fc.Arbitrary<infer Q> ? Q : never;

const queryOf = (
  { key, sort, filter, projection, limit, isForward }: Question,
  run: number,
): Query => {
  const isText = typeof key.values[0] === "string";
  const condition = sort.startsWith("begins_with") && !isText ? "#s > :a" : sort;
  const text = [condition, filter, projection].join(" ");
  const isUsed = ([name]: readonly [string, unknown]): boolean =>
    new RegExp(`${name}\\b`).test(text);
  const values = Object.entries({ ":a": key.values[0], ":b": key.values[1], ":size": 2 });
  return {
    ...("IndexName" in key ? { IndexName: key.IndexName } : { ConsistentRead: true }),
    KeyConditionExpression: ["#p = :p", ...(condition ? [condition] : [])].join(" AND "),
    FilterExpression: filter,
    ProjectionExpression: projection,
    ExpressionAttributeNames: Object.fromEntries([
      ["#p", key.names["#p"]],
      ...Object.entries({ "#s": key.names["#s"], "#f": "session_id" }).filter(isUsed),
    ]),
    ExpressionAttributeValues: Object.fromEntries([[":p", key.of(run)], ...values.filter(isUsed)]),
    Limit: limit,
    ScanIndexForward: isForward,
  };
};
