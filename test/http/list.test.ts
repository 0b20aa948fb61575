import { beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Sent, type Service, service } from "../support/http.ts";
import { storeKinds } from "./stores.ts";
import { allOf, dataOf, fieldsOf, pagesOf } from "./talk.ts";

describe.each(storeKinds())("GET /v1/sessions on $name", ({ open }) => {
  let store: SessionStore;
  beforeAll(async () => {
    store = (await open())();
  });

  /** A service for an owner of its own. */
  const own = (owner: string, options: { lifetimeSeconds?: number } = {}) => {
    const { handler, clock }: Service = service({ store, ...options });
    const list: Sent = { method: "GET", path: "/v1/sessions", owner };
    const send = async (method: string, path: string, body?: unknown): Promise<number> =>
      (await call(handler, { method, path: `/v1/sessions${path}`, body, owner })).status;
    const ids = async (query: Record<string, string> = {}): Promise<unknown[]> =>
      idsOf(await allOf(handler, list, query));
    const create = async (...names: string[]): Promise<void> => {
      for (const session_id of names) {
        clock.advance(1000);
        expect(await send("POST", "", { session_id })).toBe(201);
      }
    };
    return { handler, clock, list, send, ids, create };
  };
  const idsOf = (heads: readonly unknown[]) => heads.map((head) => fieldsOf(head)["session_id"]);

  test("has the caller's own sessions as they stand, newest first", async () => {
    const { handler, list, send, create } = own("whole");
    await create("a", "b");
    expect(await send("POST", "/c/turns", { input: "hi" })).toBe(200);
    expect(await send("PATCH", "/a", { metadata: { n: 1 } })).toBe(200);
    const { json } = await call(handler, list);
    const heads = await Promise.all(
      ["c", "b", "a"].map(
        async (id) => (await call(handler, { ...list, path: `/v1/sessions/${id}` })).json,
      ),
    );
    expect(json).toEqual({ data: heads, has_more: false, next_cursor: null });
    expect(heads[0]).toMatchObject({ version: 2, message_count: 2 });
    expect(heads[2]).toMatchObject({ metadata: { n: 1 } });
  });

  test("is empty for who has none", async () => {
    const { handler, list } = own("nobody");
    const none = { data: [], has_more: false, next_cursor: null };
    expect((await call(handler, list)).json).toEqual(none);
  });

  test("has no one else's, however similar their name", async () => {
    const owners = ["ow", "ow ", "Ow", "ow#", "ow%23", "owe", "o w"];
    for (const owner of owners) await own(owner).create(`of-${owners.indexOf(owner)}`);
    for (const owner of owners)
      expect(await own(owner).ids()).toEqual([`of-${owners.indexOf(owner)}`]);
  });

  test("reaches all sessions by pages of 1 to 8, those of one moment too", async () => {
    const { handler, clock, list, send, create } = own("pages");
    await create("s1", "s2");
    for (const session_id of ["same-b", "same-c", "same-a"]) await send("POST", "", { session_id });
    clock.advance(1);
    await create("s3", "s4");
    const newestFirst = ["s4", "s3", "same-c", "same-b", "same-a", "s2", "s1"];
    for (let limit = 1; limit <= 8; limit++) {
      const pages = await pagesOf(handler, list, { limit: `${limit}` });
      expect(idsOf(pages.flat())).toEqual(newestFirst);
      expect(pages.every((page) => page.length <= limit)).toBe(true);
    }
  });

  test("goes on where it was when sessions come and go meanwhile", async () => {
    const { handler, list, ids, send, create } = own("moving");
    await create("a", "b", "c", "d", "e");
    const first = await call(handler, { ...list, query: { limit: "2" } });
    expect(idsOf(dataOf(first.json["data"]))).toEqual(["e", "d"]);
    await create("f");
    // The one that the cursor stands at, and one behind it.
    expect(await send("DELETE", "/d")).toBe(204);
    expect(await send("DELETE", "/b")).toBe(204);
    const cursor = String(first.json["next_cursor"]);
    expect(await ids({ limit: "2", cursor })).toEqual(["c", "a"]);
    expect(await ids({ limit: "2" })).toEqual(["f", "e", "c", "a"]);
  });

  test("has no deleted session, and a recreated one once, in its new place", async () => {
    const { ids, send, create } = own("deleted");
    await create("a", "b", "c");
    await send("DELETE", "/a");
    expect(await ids()).toEqual(["c", "b"]);
    await create("a");
    expect(await ids()).toEqual(["a", "c", "b"]);
    expect(await ids({ limit: "1" })).toEqual(["a", "c", "b"]);
  });

  test("has no expired session, from its very second on", async () => {
    const { ids, clock, create } = own("expired", { lifetimeSeconds: 3600 });
    await create("old", "young");
    clock.advance(3_599_000 - 1);
    expect(await ids()).toEqual(["young", "old"]);
    clock.advance(1);
    expect(await ids()).toEqual(["young"]);
    expect(await ids({ limit: "1" })).toEqual(["young"]);
    clock.advance(1000);
    expect(await ids()).toEqual([]);
  });

  test("stands by created_at, which an import brings along", async () => {
    const { ids, send, create } = own("imports", { lifetimeSeconds: 86_400 });
    await create("now");
    const snapshot = (session_id: string, created_at: string) =>
      send("PUT", `/${session_id}/snapshot`, {
        session_id,
        created_at,
        metadata: {},
        messages: [],
      });
    expect(await snapshot("earlier", "2100-12-01T13:00:00.5+02:00")).toBe(201);
    expect(await snapshot("later", "2100-12-01T12:00:00.9-01:00")).toBe(201);
    expect(await ids()).toEqual(["later", "now", "earlier"]);
  });

  test("has 50 sessions without a limit, and at most 100 with one", async () => {
    const { handler, list, send } = own("many");
    for (let n = 0; n < 101; n++) await send("POST", "", { session_id: `s${n}` });
    for (const [query, count] of [
      [{}, 50],
      [{ limit: "1" }, 1],
      [{ limit: "100" }, 100],
    ] as const) {
      const { json } = await call(handler, { ...list, query });
      expect(json["data"]).toHaveLength(count);
      expect(json["has_more"]).toBe(true);
    }
    expect(new Set(idsOf(await allOf(handler, list))).size).toBe(101);
  });

  test("stays under what Lambda can answer, however large the metadata (H10)", async () => {
    const { handler, list, send } = own("large");
    for (let n = 0; n < 60; n++) {
      const metadata = { text: '"'.repeat(32_000) };
      expect(await send("POST", "", { session_id: `s${n}`, metadata })).toBe(201);
    }
    const pages = await pagesOf(handler, list, { limit: "100" });
    expect(new Set(idsOf(pages.flat())).size).toBe(60);
    expect(pages.flat()).toHaveLength(60);
    expect(pages.length).toBeLessThan(10);
  });

  test.each(["0", "101", "1000", "-1", "1.5", "", " 5", "ten", "1e1"])(
    "refuses the limit %j (H02)",
    async (limit) => {
      const refused = await call(own("limits").handler, {
        ...own("limits").list,
        query: { limit },
      });
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "limit" }] } });
      expect(refused.json["detail"]).toContain("1 to 100");
    },
  );

  test.each<[string, unknown]>([
    ["no list", {}],
    ["an empty list", []],
    ["a number", [1]],
    ["null", [null]],
    ["a list in a list", [["x"]]],
    ["an empty text", [""]],
    ["control characters", ["\u0000"]],
    ["a lone surrogate", ["\ud800"]],
    ["a text too long for a key", ["2100-12-01T12:00:00.000Z#".padEnd(1100, "x")]],
    ["two places", ["2100-12-01T12:00:00.000Z#s", "x"]],
  ])("refuses a cursor of %s (H02)", async (_, place) => {
    const { handler, list } = own("cursors");
    const cursor = Buffer.from(JSON.stringify(place)).toString("base64url");
    const refused = await call(handler, { ...list, query: { cursor } });
    expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "cursor" }] } });
  });

  test.each(["", "x", "%", "bnVsbA", "💥"])("refuses the cursor %j (H02)", async (cursor) => {
    const { handler, list } = own("cursors");
    expect((await call(handler, { ...list, query: { cursor } })).status).toBe(400);
  });

  test("refuses a cursor of messages", async () => {
    const { handler, list, send } = own("mixed");
    await send("POST", "/s/turns", { input: "hi" });
    const messages = { ...list, path: "/v1/sessions/s/messages" };
    const { json } = await call(handler, { ...messages, query: { limit: "1" } });
    const cursor = String(json["next_cursor"]);
    expect((await call(handler, { ...list, query: { cursor } })).status).toBe(400);
    const first = await call(handler, messages);
    expect(first.status).toBe(200);
  });

  test("shows another's cursor nothing but one's own (X01)", async () => {
    const mallory = own("mallory");
    await mallory.create("m1", "m2");
    const trent = own("trent");
    await trent.create("t1", "t2", "t3");
    const { json } = await call(trent.handler, { ...trent.list, query: { limit: "1" } });
    const found = await mallory.ids({ cursor: String(json["next_cursor"]) });
    expect(["m2", "m1"]).toEqual(expect.arrayContaining(found));
  });
});
