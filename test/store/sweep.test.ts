import { describe, expect, test } from "vitest";
import { userMessage } from "../../lib/session/message.ts";
import { headKey } from "../../lib/store/dynamodb/keys.ts";
import type { SweepReport } from "../../lib/store/dynamodb/sweep.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { EXPIRY_SHARDS } from "../../lib/store/dynamodb/table.ts";
import { dynamoEngines } from "../support/dynamodb.ts";
import type { SentRequest } from "../support/faulty.ts";
import { doneTurn, head } from "../support/heads.ts";
import { hookedClient } from "../support/hooked.ts";
import {
  BIRTH_MS,
  DAY_MS,
  EXPIRY_MS,
  isHead,
  isIndexQuery,
  isOf,
  itemsIn,
  LIFETIME_MS,
  NOTHING,
  nameOf,
  noise,
  sweepOf,
  tableWith,
  worldOn,
} from "./expiring.ts";

describe.each(dynamoEngines())("the sweeper on $name", ({ endpoint }) => {
  test("deletes expired sessions with all that belongs to them, and leaves the living as they are", async () => {
    const world = await worldOn(endpoint);
    await world.short();
    await world.long();
    const fork = await world.sessions.fork(await world.long());
    const dying = await itemsIn(world);
    expect(new Set(dying.map(({ sk }) => String(sk)[0]))).toEqual(
      new Set(["H", "S", "T", "P", "O"]),
    );
    expect(dying.filter(isOf(fork)).length).toBeGreaterThan(1);
    world.clock.advance(10 * DAY_MS);
    const living = await world.long();
    await world.short();
    const history = await world.historyOf(living);
    const stay = (await itemsIn(world)).filter(
      (item) => !dying.some((each) => nameOf(each) === nameOf(item)),
    );

    const report = await world.sweep(EXPIRY_MS + DAY_MS);
    expect(report).toEqual({ ...NOTHING, sessions: 4, items: dying.length - 4 });
    expect(await itemsIn(world)).toEqual(stay);
    expect(await world.historyOf(living)).toEqual(history);
    expect(await world.sweep(EXPIRY_MS + DAY_MS)).toEqual(NOTHING);
  });

  test("T07: takes each item by its own expiry: HEAD alone at once, with a history a day later", async () => {
    const world = await worldOn(endpoint);
    await world.short();
    const long = await world.long();
    const all = await itemsIn(world);

    expect(await world.sweep(EXPIRY_MS - 1)).toEqual(NOTHING);
    expect(await itemsIn(world)).toEqual(all);
    expect(await world.sweep(EXPIRY_MS)).toEqual({ ...NOTHING, sessions: 1, kept: 1 });
    expect(await world.sweep(EXPIRY_MS + DAY_MS - 1)).toEqual({ ...NOTHING, kept: 1 });
    expect(await itemsIn(world)).toEqual(all.filter(isOf(long)));
    expect(await world.sweep(EXPIRY_MS + DAY_MS)).toMatchObject({ sessions: 1, kept: 0 });
    expect(await itemsIn(world)).toEqual([]);
  });

  test("T07: goes by what was stored for each, not by its age", async () => {
    const world = await worldOn(endpoint);
    const heads = [1, 30].map((days) =>
      head({ expiresAtSeconds: (BIRTH_MS + days * DAY_MS) / 1000 }),
    );
    for (const it of heads) await world.store.create({ head: it, nowMs: BIRTH_MS });
    expect(await world.sweep(BIRTH_MS + 10 * DAY_MS)).toEqual({ ...NOTHING, sessions: 1 });
    expect((await itemsIn(world)).map(({ session_id }) => session_id)).toEqual([
      heads[1]?.sessionId,
    ]);
  });

  test("asks but once about a session whose history isn't due yet", async () => {
    const world = await worldOn(endpoint);
    await world.long();
    const { client, requests } = hookedClient(endpoint, async () => undefined);
    expect(await sweepOf({ ...world, client }, EXPIRY_MS, { pageSize: 1 })).toMatchObject({
      kept: 1,
    });
    // Its shard has a second page, which is empty.
    expect(requests.sent).toBe(EXPIRY_SHARDS + 1 + 1);
  });

  test("takes a tombstone after its day, and what its session left with it, due or not", async () => {
    const world = await worldOn(endpoint);
    const key = await world.long();
    const history = (await world.itemsOf(key)).length - 1;
    world.clock.advance(DAY_MS);
    await world.leaveTombstone(key);
    expect(await world.sweep(world.clock.nowMs() + DAY_MS - 1)).toEqual(NOTHING);
    const report = await world.sweep(world.clock.nowMs() + DAY_MS);
    expect(report).toEqual({ ...NOTHING, sessions: 1, items: history });
    expect(await itemsIn(world)).toEqual([]);
  });

  test("leaves a recreated session alone, and takes what its namesake left when its own time has come", async () => {
    const world = await worldOn(endpoint);
    const key = await world.long();
    const old = await world.itemsOf(key);
    world.clock.advance(DAY_MS);
    await world.leaveTombstone(key);
    world.clock.advance(5 * DAY_MS);
    await world.long(key);
    // Its creator ended before it had removed what the namesake left.
    for (const item of old) if (item["sk"] !== "HEAD") await world.change(item, {});
    const rebirthMs = world.clock.nowMs();
    const both = await world.itemsOf(key);
    expect(both.filter((item) => old.some((each) => nameOf(each) === nameOf(item)))).toHaveLength(
      old.length,
    );
    const history = await world.historyOf(key);

    expect(await world.sweep(rebirthMs + LIFETIME_MS - 1)).toEqual(NOTHING);
    expect(await itemsIn(world)).toEqual(both);
    expect(await world.historyOf(key)).toEqual(history);
    const report = await world.sweep(rebirthMs + LIFETIME_MS + DAY_MS);
    expect(report).toEqual({ ...NOTHING, sessions: 1, items: both.length - 1 });
    expect(await itemsIn(world)).toEqual([]);
  });

  test("keeps the HEAD of a dead session while something of another life of it lies there, and its tombstone too", async () => {
    const world = await worldOn(endpoint);
    const [expired, deleted] = [await world.short(), await world.long()];
    await world.leaveTombstone(deleted);
    // An import over it is under way, or died: its HEAD comes last.
    const atMs = EXPIRY_MS + 2 * DAY_MS;
    for (const key of [expired, deleted]) {
      const it = head({ ...key, expiresAtSeconds: (atMs + 7 * DAY_MS) / 1000 });
      const turn = doneTurn({ messages: [userMessage(noise("import", 5000))] });
      await world.store.prepare(it, { turns: [turn], records: new Map() });
    }
    expect(await world.sweep(atMs)).toMatchObject({ sessions: 0, kept: 2 });
    const kinds = (await itemsIn(world)).map(({ sk }) => String(sk)[0]).join("");
    expect(kinds).toMatch(/^H[SP]+H[SP]+$/);
    expect(await world.sweep(atMs + 8 * DAY_MS)).toMatchObject({ sessions: 2, kept: 0 });
    expect(await itemsIn(world)).toEqual([]);
  });

  test("takes what expired more than five years ago, which a table's TTL leaves for ever", async () => {
    const world = await worldOn(endpoint, Date.UTC(2001, 0, 1));
    await world.long();
    await world.short();
    expect(await world.sweep(Date.UTC(2001, 0, 1) + LIFETIME_MS + 6 * 366 * DAY_MS)).toMatchObject({
      sessions: 2,
      kept: 0,
    });
    expect(await itemsIn(world)).toEqual([]);
  });

  test.each([1, 3])("T06: follows every page, of %i items each", async (pageSize) => {
    const world = await worldOn(endpoint);
    await world.long();
    for (let n = 0; n < 30; n++) {
      await world.store.create({
        head: head({ expiresAtSeconds: EXPIRY_MS / 1000 }),
        nowMs: BIRTH_MS,
      });
    }
    const count = (await itemsIn(world)).length;
    expect(await world.sweep(EXPIRY_MS + DAY_MS, { pageSize })).toEqual({
      ...NOTHING,
      sessions: 31,
      items: count - 31,
    });
    expect(await itemsIn(world)).toEqual([]);
  });

  test("T06: goes on behind an empty page", async () => {
    const world = await worldOn(endpoint);
    for (let n = 0; n < 5; n++) await world.short();
    const isFirstPage = (request: SentRequest) =>
      isIndexQuery(request) && !request.body.includes("ExclusiveStartKey");
    const { client } = hookedClient(endpoint, async (request) => {
      if (!isFirstPage(request)) return undefined;
      const shard = /":shard":\{"N":"(\d+)"\}/.exec(request.body)?.[1];
      const LastEvaluatedKey = {
        pk: { S: "a#a" },
        sk: { S: "HEAD" },
        expiry_shard: { N: shard },
        expires_at: { N: "1" },
      };
      return { Count: 0, Items: [], LastEvaluatedKey };
    });
    expect(await sweepOf({ ...world, client }, EXPIRY_MS)).toEqual({ ...NOTHING, sessions: 5 });
  });

  test.each([1, 100])(
    "T06: stops when its time is over, and goes on from there to the end, in pages of %i",
    async (pageSize) => {
      const world = await worldOn(endpoint);
      const kept = [await world.long(), await world.long()];
      const early = EXPIRY_MS + DAY_MS;
      for (const key of kept) {
        for (const item of await world.itemsOf(key))
          if (!isHead(item)) await world.change(item, { expires_at: early / 1000 + 1 });
      }
      for (let n = 0; n < 3; n++) await world.long();
      for (let n = 0; n < 15; n++) await world.short();
      const before = await itemsIn(world);
      const stay = before.filter((item) => kept.some((key) => isOf(key)(item)));

      const reports: SweepReport[] = [];
      const { client, requests } = hookedClient(endpoint, async () => undefined);
      let resume: string | undefined;
      do {
        const end = requests.sent + 48;
        const isOver = () => requests.sent >= end;
        const report = await sweepOf({ ...world, client }, early, {
          pageSize,
          isOver,
          ...(resume === undefined ? {} : { resume }),
        });
        reports.push(report);
        resume = report.resume;
      } while (resume !== undefined && reports.length < 100);
      const sum = (name: "sessions" | "items" | "kept" | "failed") =>
        reports.reduce((all, report) => all + report[name], 0);
      expect(reports.length).toBeGreaterThan(1);
      expect({
        sessions: sum("sessions"),
        items: sum("items"),
        kept: sum("kept"),
        failed: sum("failed"),
      }).toEqual({
        sessions: 18,
        items: before.length - stay.length - 18,
        kept: 2,
        failed: 0,
      });
      expect(await itemsIn(world)).toEqual(stay);
    },
  );

  test("asks the table for nothing when its time is over at once, and can go on from there", async () => {
    const world = await worldOn(endpoint);
    await world.short();
    const { client, requests } = hookedClient(endpoint, async () => undefined);
    const { resume, ...counts } = await sweepOf({ ...world, client }, EXPIRY_MS, {
      isOver: () => true,
    });
    expect([counts, requests.sent]).toEqual([NOTHING, 0]);
    expect(await world.sweep(EXPIRY_MS, { resume: String(resume) })).toEqual({
      ...NOTHING,
      sessions: 1,
    });
  });

  test("asks the table for nothing more once its time is over, wherever it stands then", async () => {
    const world = await worldOn(endpoint);
    await world.long();
    const items = await itemsIn(world);
    const sweepUntil = async (count: number) => {
      const table = await tableWith(endpoint, items);
      const { client, requests } = hookedClient(endpoint, async () => undefined);
      const isOver = () => requests.sent >= count;
      const report = await sweepOf({ ...table, client }, EXPIRY_MS + DAY_MS, {
        isOver,
        pageSize: 3,
      });
      return { sent: requests.sent, isStopped: report.resume !== undefined };
    };
    const { sent: all } = await sweepUntil(Number.POSITIVE_INFINITY);
    expect(all).toBeGreaterThan(EXPIRY_SHARDS + items.length);
    // The shards all begin at once.
    for (let count = EXPIRY_SHARDS; count < all; count++) {
      expect(await sweepUntil(count)).toEqual({ sent: count, isStopped: true });
    }
  });

  test("leaves what it can't make out, counts it, and goes on with the rest", async () => {
    const world = await worldOn(endpoint);
    const [bare, later, text, plain] = [
      await world.short(),
      await world.long(),
      await world.long(),
      await world.short(),
    ];
    const put = (item: Item): Promise<unknown> => world.change(item, {});
    const { incarnation: _, ...headless } = (await world.itemsOf(bare)).find(isHead) ?? {};
    await put(headless);
    const segments = [later, text].map(async (key) =>
      (await world.itemsOf(key)).find(({ sk }) => String(sk).startsWith("S#")),
    );
    const [first = {}, second = {}] = await Promise.all(segments);
    const { expires_at: __, ...endless } = first;
    await put(endless);
    await world.change(second, { expires_at: 1.5 });
    const stray = { pk: "stray", sk: "X", expiry_shard: 3, expires_at: 5_000_000 };
    await put(stray);
    // A history that nobody can read is deleted as any other.
    await world.change((await world.itemsOf(plain)).find(isHead) ?? {}, {
      tail: "[",
      format: 99,
    });

    const report = await world.sweep(EXPIRY_MS + DAY_MS);
    expect(report).toMatchObject({ sessions: 1, kept: 2, failed: 4 });
    const left = (await itemsIn(world)).map(nameOf);
    const heads = [bare, later, text].map((key) => nameOf(headKey(key)));
    expect(left).toEqual([...heads, nameOf(endless), nameOf(second), nameOf(stray)].toSorted());
  });
});
