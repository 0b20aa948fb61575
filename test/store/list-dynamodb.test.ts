/** The list on DynamoDB, of an owner whose sessions have expired in long rows that cleanup hasn't come to yet. */
import { describe, expect, test } from "vitest";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { head, hex, NOW_MS, NOW_SECONDS } from "../support/heads.ts";

/** Where an index page ends here; on DynamoDB, after 1 MB. */
const PAGE_ITEMS = 3;

describe.each(dynamoEngines())("the list on $name", ({ endpoint }) => {
  test("makes at most five queries a call, and its cursor leads behind any row of expired sessions", async () => {
    const { tableName } = await freshTable(endpoint);
    const { client, sent } = faultyClient(endpoint, () => undefined);
    client.middlewareStack.add(
      (next, { commandName }) =>
        (args) => {
          if (commandName === "QueryCommand") Object.assign(args.input, { Limit: PAGE_ITEMS });
          return next(args);
        },
      { step: "initialize" },
    );
    const store = dynamoSessionStore({ client, tableName });

    const owner = hex();
    const rows = [
      { expired: 40, living: 2 },
      { expired: 10, living: 1 },
    ];
    const isLiving = rows.flatMap(({ expired, living }) => [
      ...Array.from({ length: expired }, () => false),
      ...Array.from({ length: living }, () => true),
    ]);
    const newestFirst = isLiving.map((lives, n) =>
      head({
        owner,
        createdAt: new Date(NOW_MS - (n + 1) * 1000).toISOString(),
        expiresAtSeconds: NOW_SECONDS + (lives ? 3600 : 0),
      }),
    );
    await Promise.all(newestFirst.map((it) => store.create({ head: it, nowMs: NOW_MS })));

    const seen: string[] = [];
    const queries: number[] = [];
    let after: string | undefined;
    do {
      const before = sent.length;
      const place = after === undefined ? {} : { after };
      const page = await store.list({ owner, limit: PAGE_ITEMS, nowMs: NOW_MS, ...place });
      seen.push(...page.heads.map(({ sessionId }) => sessionId));
      const made = sent.slice(before).filter(({ operation }) => operation === "Query");
      queries.push(made.length);
      after = page.next;
    } while (after !== undefined);
    const living = newestFirst.filter((_, n) => isLiving[n]);
    expect(seen).toEqual(living.map(({ sessionId }) => sessionId));
    expect(queries).toEqual([5, 5, 4, 4]);
  });
});
