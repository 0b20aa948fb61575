import { expect, test } from "vitest";
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import { sessionStoreOn } from "../../lib/store/dynamodb/store.ts";
import { simulatedTable } from "../simulation/table.ts";
import { doneTurn, head, NOW_MS } from "../support/heads.ts";

/** As an eventually consistent query may: the newest items before a place aren't there yet. */
const missingNewest = (table: Table): Table => ({
  ...table,
  query: async (input) => {
    const isLast = input.Limit === 1 && !input.ConsistentRead;
    if (!isLast) return table.query(input);
    const { items, next } = await table.query({ ...input, Limit: 3 });
    return { items: items.slice(2), next };
  },
});

test("a stale read that brings an older segment beside the right one finds the turn all the same", async () => {
  const table = simulatedTable().asTable();
  const turns = Array.from({ length: 60 }, (_, n) =>
    doneTurn({ turnId: `turn-${n + 1}`, startedAt: `${"x".repeat(1500)}${n}` }),
  );
  const store = sessionStoreOn(table, { cacheBytes: 1_000_000 });
  const prepared = await store.prepare(head(), { turns, records: new Map() });
  await store.create({ head: prepared, nowMs: NOW_MS });

  for (const [n, turn] of turns.entries()) {
    const stale = sessionStoreOn(missingNewest(table), { cacheBytes: 1_000_000 });
    expect(await stale.turns(prepared, { from: n + 1, to: n + 2 })).toEqual([turn]);
  }
});
