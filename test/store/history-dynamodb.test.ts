/** History on DynamoDB: how it is sealed, cached and read. */
import { describe, expect, test } from "vitest";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { Head } from "../../lib/store/head.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { claimOn, commitOf, head, NOW_MS, openTurn } from "../support/heads.ts";
import { all, build, openHistory, turnsOf } from "./histories.ts";
import { append, headOf } from "./open-turns.ts";

describe.each(dynamoEngines())("history on $name", ({ endpoint }) => {
  test("a warm process reads nothing again; a cold one reads what is sealed in one request", async () => {
    const { store, another, sent } = await openHistory(endpoint);
    const turns = turnsOf(12, 1500);
    const key = await build(store, turns);
    const it = await headOf(store, key);
    const before = sent.length;
    expect(await store.turns(it, { from: 1, to: it.version })).toEqual(turns);
    expect(await store.turns(it, { from: 4, to: 9 })).toEqual(turns.slice(3, 8));
    expect(sent.length).toBe(before);
    const cold = another();
    expect(await cold.turns(it, { from: 1, to: it.version })).toEqual(turns);
    expect(sent.length).toBe(before + 1);
    await cold.turns(it, { from: 1, to: it.version });
    expect(sent.length).toBe(before + 1);
  });

  test("a seal that comes late, of a runner that was overtaken, takes nothing away", async () => {
    const { store, another } = await openHistory(endpoint);
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    const turns = turnsOf(7, 1700);
    const seen: Head[] = [];
    for (const turn of turns.slice(0, 5)) {
      const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
      if (!claimed.applied) throw new Error("the claim was refused");
      await store.commit(commitOf(claimed.head, { turn }));
      seen.push(await headOf(store, key));
    }
    for (const turn of turns.slice(5)) await append(store, key, turn);
    expect((await headOf(store, key)).tailFrom).toBeGreaterThan(5);
    for (const late of seen.toReversed()) await another().seal(late);
    expect(await all(another(), key)).toEqual(turns);
  });

  test("a segment that a dead runner wrote is adopted, longer or shorter than one's own", async () => {
    const { store, another } = await openHistory(endpoint);
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    const turns = turnsOf(6, 1700);
    for (const [n, turn] of turns.entries()) {
      const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
      if (!claimed.applied) throw new Error("the claim was refused");
      if (n === 2) await another().seal(claimed.head);
      const sealed = n > 4 ? await store.seal(claimed.head) : undefined;
      if (n > 4) expect(sealed).toEqual({ to: 3 });
      await store.commit(commitOf(claimed.head, { turn, ...(sealed ? { sealed } : {}) }));
    }
    expect(await headOf(store, key)).toMatchObject({ tailFrom: 3, version: 7 });
    expect(await all(another(), key)).toEqual(turns);
  });

  test("the cache keeps to its bytes", async () => {
    const { store, sent } = await openHistory(endpoint, 12_000);
    const turns = turnsOf(20, 1500);
    const key = await build(store, turns);
    const it = await headOf(store, key);
    for (let n = 0; n < 2; n++) {
      const before = sent.length;
      expect(await store.turns(it, { from: 1, to: it.version })).toEqual(turns);
      expect(sent.length).toBeGreaterThan(before);
    }
  });

  test("a window reads the segments it needs, and no more", async () => {
    const { store, another, sent } = await openHistory(endpoint);
    const turns = turnsOf(40, 1500);
    const key = await build(store, turns);
    const it = await headOf(store, key);
    const before = sent.length;
    expect(await another().turns(it, { from: 34, to: it.version })).toEqual(turns.slice(33));
    const queries = sent.slice(before).map(({ body }) => body);
    expect(queries).toHaveLength(2);
    expect(queries.some((body) => body.includes('"Limit":1'))).toBe(true);
    expect(queries.some((body) => body.includes("#00000034"))).toBe(true);
    expect(queries.some((body) => !body.includes('"Limit":1') && body.includes("#00000001"))).toBe(
      false,
    );
  });
});

test("an eventually consistent read that misses the newest segment is read again consistently", async () => {
  const [{ endpoint } = { endpoint: "" }] = dynamoEngines();
  const { client, tableName } = await freshTable(endpoint);
  const inner = dynamoSessionStore({ client, tableName });
  const it = head();
  await inner.create({ head: it, nowMs: NOW_MS });
  const key = { owner: it.owner, sessionId: it.sessionId };
  const turns = turnsOf(9, 1700);
  for (const turn of turns) {
    const claimed = await inner.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
    if (!claimed.applied) throw new Error("the claim was refused");
    await inner.commit(commitOf(claimed.head, { turn, sealed: await inner.seal(claimed.head) }));
  }
  const reads: unknown[] = [];
  const stale = faultyClient(endpoint, () => undefined).client;
  stale.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { input } = args;
      if (!("Items" in result.output) || !Array.isArray(result.output.Items)) return result;
      const isConsistent = "ConsistentRead" in input && input.ConsistentRead === true;
      reads.push(isConsistent);
      if (!isConsistent) result.output.Items.pop();
      return result;
    },
    { step: "initialize" },
  );
  const store = dynamoSessionStore({ client: stale, tableName });
  const now = await store.read(key);
  if (!now) throw new Error("there is no session");
  expect(await store.turns(now, { from: 1, to: now.version })).toEqual(turns);
  expect(reads).toEqual([false, true]);
});
