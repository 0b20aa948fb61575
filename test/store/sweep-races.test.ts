/** The sweeper beside others: turns, creators, other sweeps, and its own death. */
import { beforeAll, describe, expect, test } from "vitest";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { SweepReport } from "../../lib/store/dynamodb/sweep.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { StoreThrottledError, StoreUnavailableError } from "../../lib/store/errors.ts";
import type { SessionKey } from "../../lib/store/head.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { dynamoEngines } from "../support/dynamodb.ts";
import type { SentRequest } from "../support/faulty.ts";
import { claimOn, head, hex } from "../support/heads.ts";
import { hookedClient } from "../support/hooked.ts";
import {
  BIRTH_MS,
  DAY_MS,
  EXPIRY_MS,
  isDelete,
  isHead,
  isIndexQuery,
  isOf,
  itemsIn,
  LIFETIME_MS,
  NOTHING,
  SECOND_MS,
  sweepOf,
  tableWith,
  worldOn,
} from "./expiring.ts";

describe.each(dynamoEngines())("the sweeper on $name", ({ endpoint }) => {
  const once = (isIt: (request: SentRequest) => boolean, act: () => Promise<unknown>) => {
    let isDone = false;
    return hookedClient(endpoint, async (request) => {
      if (isDone || !isIt(request)) return undefined;
      isDone = true;
      await act();
      return undefined;
    }).client;
  };

  describe("between its look and its delete", () => {
    test.each([
      ["its look at the index and at the session", isPartitionQuery],
      ["that and the delete of HEAD", isDelete],
    ])("spares a session recreated after %s", async (_when, isIt) => {
      const world = await worldOn(endpoint);
      const key = await world.short();
      world.clock.advance(LIFETIME_MS);
      const client = once(isIt, () => world.long(key));
      expect(await sweepOf({ ...world, client }, EXPIRY_MS)).toEqual(NOTHING);
      expect(await world.historyOf(key)).toHaveLength(8);
    });

    test("leaves a recreated session that has expired too to a look at what is its own", async () => {
      const world = await worldOn(endpoint);
      const key = await world.short();
      const client = once(isDelete, async () => {
        const item = (await world.itemsOf(key)).find(isHead) ?? {};
        await world.change(item, { incarnation: Buffer.from(hex(), "hex") });
      });
      expect(await sweepOf({ ...world, client }, EXPIRY_MS)).toEqual({ ...NOTHING, kept: 1 });
      expect(await itemsIn(world)).toHaveLength(1);
    });

    test.each([
      ["HEAD", isHead, 1],
      ["an item of its history", (item: Item) => !isHead(item), 0],
    ] as const)("spares %s whose expiry was put off", async (_what, isIt, sessions) => {
      const world = await worldOn(endpoint);
      const key = isIt({ sk: "HEAD" }) ? await world.short() : await world.long();
      const item = (await world.itemsOf(key)).find(isIt) ?? {};
      const renewed = { ...item, expires_at: EXPIRY_MS / 1000 + 7 * 86_400 };
      const client = once(isDelete, () => world.change(item, { expires_at: renewed.expires_at }));
      const report = await sweepOf({ ...world, client }, EXPIRY_MS + DAY_MS);
      expect(report).toMatchObject({ sessions: 0, kept: 1 - sessions });
      expect(await itemsIn(world)).toContainEqual(renewed);
    });
  });

  test("leaves a session to the turn that runs as it expires, until the turn's lease has ended", async () => {
    const world = await worldOn(endpoint);
    const key = await world.short();
    const untilMs = EXPIRY_MS + 20 * SECOND_MS;
    const nowMs = EXPIRY_MS - 10 * SECOND_MS;
    const write = claimOn(key, { nowMs, claim: { attempt: hex(), turnId: "turn-1", untilMs } });
    expect(await world.store.claim(write)).toMatchObject({ applied: true });
    expect(await world.sweep(untilMs - 1)).toEqual({ ...NOTHING, kept: 1 });
    expect(await world.store.read(key)).toMatchObject({ claim: { untilMs } });
    expect(await world.sweep(untilMs)).toEqual({ ...NOTHING, sessions: 1 });
  });

  describe("many at work", () => {
    let living: SessionKey[];
    let items: Item[];
    let stay: Item[];
    let histories: unknown[];
    const nowMs = EXPIRY_MS + DAY_MS;

    beforeAll(async () => {
      const world = await worldOn(endpoint);
      await world.short();
      await world.long();
      await world.leaveTombstone(await world.long());
      world.clock.advance(5 * DAY_MS);
      const recreated = await world.long();
      await world.leaveTombstone(recreated);
      await world.long(recreated);
      living = [recreated, await world.long(), await world.short()];
      items = await itemsIn(world);
      stay = items.filter((item) => living.some((key) => isOf(key)(item)));
      histories = await Promise.all(living.map(world.historyOf));
    });

    const expectTheLiving = async (
      table: Parameters<typeof dynamoSessionStore>[0],
    ): Promise<void> => {
      const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => {} };
      const sessions = createSessions({
        store: dynamoSessionStore({ ...table, cacheBytes: 0 }),
        clock,
      });
      const read = living.map(
        async (key) => (await sessions.export(await sessions.read(key))).messages,
      );
      expect(await Promise.all(read)).toEqual(histories);
    };

    test("a sweep killed at any of its deletes, whether that was applied or not, leaves what the next one finds", async () => {
      const deletes = items.length - stay.length;
      expect(deletes).toBeGreaterThan(10);
      for (let n = 1; n <= deletes; n++) {
        const table = await tableWith(endpoint, items);
        let deleted = 0;
        const { client, requests } = hookedClient(endpoint, async (request, send) => {
          if (isDelete(request)) deleted++;
          if (deleted < n) return undefined;
          if (deleted === n && n % 2 === 0) await send();
          throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
        });
        await expect(sweepOf({ ...table, client }, nowMs)).rejects.toThrow(StoreUnavailableError);
        expect(requests.open).toBe(0);
        await expectTheLiving(table);
        expect(await sweepOf(table, nowMs)).toMatchObject({ kept: 0, failed: 0 });
        expect(await itemsIn(table)).toEqual(stay);
        await expectTheLiving(table);
      }
    }, 120_000);

    test("E07: two at once both come to their end, whichever is ahead, and each item is counted once", async () => {
      const heads = items.filter(isHead).length - stay.filter(isHead).length;
      const all = { sessions: heads, items: items.length - stay.length - heads };
      const runs: [
        string,
        (table: Awaited<ReturnType<typeof tableWith>>) => Promise<SweepReport[]>,
      ][] = [
        ["side by side", (table) => Promise.all([sweepOf(table, nowMs), sweepOf(table, nowMs)])],
        ...[1, 2, 5, items.length - stay.length].map((n): (typeof runs)[number] => [
          `the second runs as the first makes delete ${n}`,
          async (table) => {
            const second: Promise<SweepReport>[] = [];
            let deletes = 0;
            const { client } = hookedClient(endpoint, async (request) => {
              if (isDelete(request) && ++deletes === n) second.push(sweepOf(table, nowMs));
              await second[0];
              return undefined;
            });
            return [await sweepOf({ ...table, client }, nowMs), ...(await Promise.all(second))];
          },
        ]),
      ];
      for (const [what, run] of runs) {
        const table = await tableWith(endpoint, items);
        const [first, second] = await run(table);
        const sum = {
          sessions: Number(first?.sessions) + Number(second?.sessions),
          items: Number(first?.items) + Number(second?.items),
        };
        expect([what, sum]).toEqual([what, all]);
        expect([first, second]).toMatchObject([
          { kept: 0, failed: 0 },
          { kept: 0, failed: 0 },
        ]);
        expect(await itemsIn(table)).toEqual(stay);
      }
    });
  });

  test("being throttled ends it, in every shard at once, and with a typed error", async () => {
    const world = await worldOn(endpoint);
    for (let n = 0; n < 40; n++) {
      const it = head({
        incarnation: `${n % 2}${hex().slice(1)}`,
        expiresAtSeconds: EXPIRY_MS / 1000,
      });
      await world.store.create({ head: it, nowMs: BIRTH_MS });
    }
    let deletes = 0;
    const { client, requests } = hookedClient(endpoint, async (request) => {
      if (!isDelete(request) || ++deletes > 1) return undefined;
      throw Object.assign(new Error("slow down"), { name: "ThrottlingException" });
    });
    await expect(sweepOf({ ...world, client }, EXPIRY_MS)).rejects.toThrow(StoreThrottledError);
    expect(requests.open).toBe(0);
    expect(deletes).toBeLessThan(5);
    expect(await itemsIn(world)).toHaveLength(40 - deletes + 1);
  });
});

const isPartitionQuery = (request: SentRequest): boolean =>
  request.operation === "Query" && !isIndexQuery(request);
