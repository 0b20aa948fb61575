import { beforeAll, describe, expect, test } from "vitest";
import type { HttpHandler } from "../../lib/http/handler.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Reply, type Sent, service } from "../support/http.ts";
import { busyService, fork, HEAD } from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { allOf, fieldsOf, longTalk, messagesOf, question, type Talk, talkative } from "./talk.ts";

const at = (id: string, part = ""): Sent => ({ method: "GET", path: `/v1/sessions/${id}${part}` });
const forkOf = (id: string, body?: unknown): Sent => ({
  method: "POST",
  path: `/v1/sessions/${id}/fork`,
  body,
});
const historyOf = async (handler: HttpHandler, id: string) => ({
  turns: await allOf(handler, at(id, "/turns")),
  messages: await allOf(handler, at(id, "/messages")),
});

describe.each(storeKinds())("POST /v1/sessions/{id}/fork on $name", ({ open }) => {
  let store: SessionStore;
  let cold: () => SessionStore;
  let talk: Talk;
  let handler: HttpHandler;
  beforeAll(async () => {
    cold = await open();
    store = cold();
    const served = talkative(store);
    handler = served.handler;
    talk = await longTalk(served, "long");
    const path = "/v1/sessions/long";
    await call(handler, { method: "PATCH", path, body: { metadata: { topic: "x" } } });
  });

  /** A process of its own, that has cached nothing. */
  const another = () => talkative(cold());

  test("makes a new session with the whole history and a new created_at", async () => {
    const { clock, ...other } = another();
    clock.advance(90_500);
    const original = await call(other.handler, at("long"));
    const forked = await call(other.handler, forkOf("long"));
    expect(forked.status).toBe(201);
    const id = String(forked.json["session_id"]);
    expect(forked.json).toEqual({
      ...original.json,
      session_id: expect.stringMatching(/^[0-9a-f]{12}$/),
      created_at: "2100-12-01T12:01:30.500000+00:00",
      updated_at: "2100-12-01T12:01:30.500000+00:00",
      expires_at: "2100-12-01T13:01:30.000000+00:00",
      metadata: { topic: "x" },
    });
    expect(forked.headers).toMatchObject({ etag: '"47.1"', location: `/dev/v1/sessions/${id}` });
    expect(await call(other.handler, at(id))).toMatchObject({
      json: forked.json,
      headers: { etag: '"47.1"' },
    });
    expect(await historyOf(another().handler, id)).toEqual(await historyOf(handler, "long"));
    expect((await call(handler, at("long"))).json).toEqual(original.json);
  });

  test.each([
    ["k-1", 1, []],
    ["k-9", 9, []],
    // k-10 has its place still: what took it came later.
    ["k-10", 10, []],
    ["k-44", 44, []],
    ["k-45", 45, ["k-10"]],
    ["k-46", 46, ["k-10", "k-44"]],
  ])("takes the history up to a turn, with that turn: %s", async (turnId, count, without) => {
    const forked = await call(handler, forkOf("long", { at_turn: turnId }));
    const messages = messagesOf(talk.turns.slice(0, count), without);
    expect(forked).toMatchObject({
      status: 201,
      json: { version: count + 1, turn_count: count, message_count: messages.length },
    });
    const history = await historyOf(another().handler, String(forked.json["session_id"]));
    expect(history.messages).toEqual(messages);
    expect(history.turns.map((turn) => fieldsOf(turn)["turn_id"])).toEqual(
      talk.turns.slice(0, count).map(({ json }) => json["turn_id"]),
    );
    const superseded = history.turns.filter((turn) => fieldsOf(turn)["superseded"]);
    expect(superseded.map((turn) => fieldsOf(turn)["turn_id"])).toEqual(without);
  });

  test("takes the id that it is given, if that is free", async () => {
    const given = await call(handler, forkOf("long", { session_id: "given", at_turn: "k-3" }));
    expect(given).toMatchObject({ status: 201, headers: { location: "/dev/v1/sessions/given" } });
    const before = await call(handler, at("given"));
    for (const session_id of ["given", "long"]) {
      const refused = await call(handler, forkOf("long", { session_id }));
      expect(refused).toMatchObject({ status: 409, json: { code: "session_exists" } });
    }
    expect((await call(handler, at("given"))).json).toEqual(before.json);
    expect(await call(handler, at("long"))).toMatchObject({ json: { version: 47 } });
    await call(handler, { ...at("given"), method: "DELETE" });
    const again = await call(handler, forkOf("long", { session_id: "given", at_turn: "k-2" }));
    expect(again).toMatchObject({ status: 201, json: { turn_count: 2 } });
    expect(await allOf(handler, at("given", "/turns"))).toHaveLength(2);
  });

  test.each(["k-0", "k-47", "K-1", "~", "k-1 "])(
    "refuses a turn that isn't there: %s",
    async (at_turn) => {
      const refused = await call(handler, forkOf("long", { at_turn, session_id: "none" }));
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "at_turn" }] } });
      expect(refused.json["detail"]).toContain(at_turn);
      expect((await call(handler, at("none"))).status).toBe(404);
    },
  );

  const replayed = async (id: string, n: number, process: HttpHandler): Promise<Reply> => {
    const { body, headers } = talk.turns[n - 1]?.sent ?? question(id, "?");
    return call(process, { ...question(id, "?"), body, headers: headers ?? {} });
  };

  test.each([
    ["all of it", {}, [1, 10, 30, 45, 46]],
    ["a piece", { at_turn: "k-30" }, [1, 10, 30]],
    ["a turn", { at_turn: "k-1" }, [1]],
  ])("knows the turn ids of what it copied: %s", async (_, body, known) => {
    const { handler: process, model } = another();
    const id = String((await call(process, forkOf("long", body))).json["session_id"]);
    for (const n of known) {
      const again = await replayed(id, n, process);
      expect(again.status).toBe(200);
      expect(again.json).toEqual({ ...talk.turns[n - 1]?.json, session_id: id, replayed: true });
      const other = { ...question(id, `k-${n}`), body: { input: "another" } };
      expect(await call(process, other)).toMatchObject({
        status: 422,
        json: { code: "idempotency_key_reused" },
      });
    }
    const turnCount = Math.max(...known);
    expect(await call(process, at(id))).toMatchObject({
      json: { turn_count: turnCount, turn: null },
    });
    // Looking one up that has left HEAD overlaps the model, whose answers count for nothing then.
    expect(model.calls.every(({ messages }) => messages.at(-1)?.role === "user")).toBe(true);
  });

  test("doesn't know a turn id that came behind the turn it was cut at", async () => {
    const id = String(
      (await call(handler, forkOf("long", { at_turn: "k-30" }))).json["session_id"],
    );
    const own = await replayed(id, 31, handler);
    expect(own).toMatchObject({ status: 200, json: { version: 32, replayed: false } });
  });

  test("lives apart from its original", async () => {
    const source = String((await call(handler, forkOf("long"))).json["session_id"]);
    const copy = String((await call(handler, forkOf(source))).json["session_id"]);
    const before = await historyOf(handler, source);
    const change = async (id: string, key: string): Promise<void> => {
      for (const n of [1, 2, 3]) {
        expect((await call(handler, question(id, `${key}-${n}`))).json).toMatchObject({
          version: 47 + n,
          replayed: false,
        });
      }
      const supersede = question(id, `${key}-better`, { supersedes: "k-20" });
      expect((await call(handler, supersede)).status).toBe(200);
      const metadata = { of: key };
      await call(handler, { method: "PATCH", path: `/v1/sessions/${id}`, body: { metadata } });
    };
    await change(copy, "copy");
    expect(await historyOf(another().handler, source)).toEqual(before);
    expect((await call(handler, at(source))).json).toMatchObject({
      version: 47,
      metadata: { topic: "x" },
    });
    const copied = await historyOf(handler, copy);
    await change(source, "source");
    expect(await historyOf(another().handler, copy)).toEqual(copied);
    expect((await call(handler, at(copy))).json).toMatchObject({ metadata: { of: "copy" } });
    const ids = copied.turns.map((turn) => fieldsOf(turn)["turn_id"]);
    expect(ids).toHaveLength(50);
    expect(ids.slice(46)).toEqual(["copy-1", "copy-2", "copy-3", "copy-better"]);
  });

  test("stays whole when its original is deleted, and knows its turns still", async () => {
    const source = String((await call(handler, forkOf("long"))).json["session_id"]);
    const copy = String((await call(handler, forkOf(source))).json["session_id"]);
    const before = await historyOf(handler, copy);
    expect((await call(handler, { ...at(source), method: "DELETE" })).status).toBe(204);
    const { handler: process } = another();
    expect(await historyOf(process, copy)).toEqual(before);
    expect(await replayed(copy, 5, process)).toMatchObject({
      status: 200,
      json: { replayed: true },
    });
    expect((await call(process, question(copy, "next"))).json).toMatchObject({ version: 48 });
  });

  test("outlives its original, and ends a lifetime after its own beginning", async () => {
    const { handler: process, clock } = talkative(cold());
    await longTalk({ ...another(), handler: process, clock }, "mortal");
    clock.advance(3_000_000);
    const id = String((await call(process, forkOf("mortal"))).json["session_id"]);
    const before = await historyOf(process, id);
    clock.advance(3_599_000);
    expect((await call(process, at("mortal"))).status).toBe(404);
    expect(await historyOf(process, id)).toEqual(before);
    const listed = await allOf(process, { method: "GET", path: "/v1/sessions" });
    expect(listed.map((head) => fieldsOf(head)["session_id"])).toEqual([id]);
    clock.advance(1000);
    expect((await call(process, at(id))).status).toBe(404);
  });

  test("of a session without turns has none", async () => {
    await call(handler, { method: "POST", path: "/v1/sessions", body: { session_id: "empty" } });
    const forked = await call(handler, forkOf("empty", {}));
    expect(forked).toMatchObject({ status: 201, json: { version: 1, turn_count: 0 } });
    const id = String(forked.json["session_id"]);
    expect(await historyOf(handler, id)).toEqual({ turns: [], messages: [] });
    expect((await call(handler, question(id, "first"))).json).toMatchObject({ version: 2 });
  });
});

describe("a fork of a session with a running turn", () => {
  test("has the history before it, and is free", async () => {
    const { handler, running, finish } = await busyService();
    const forked = await call(handler, fork({ session_id: "f" }));
    expect(forked).toMatchObject({ status: 201, json: { version: 1, turn: null } });
    const path = "/v1/sessions/f/turns";
    expect(await call(handler, { method: "POST", path, body: { input: "hi" } })).toMatchObject({
      status: 200,
      json: { version: 2 },
    });
    expect((await call(handler, HEAD)).json).toMatchObject({ turn: { turn_id: "k" } });
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2, final: "at last" } });
  });
});

test.each([
  ["/api", "/api/v1/sessions/f"],
  ["", "/v1/sessions/f"],
  ["/fork", "/fork/v1/sessions/f"],
])("a fork behind the base path %j is at %s", async (basePath, location) => {
  const { handler } = service();
  const path = "/v1/sessions/fork";
  await call(handler, { method: "POST", path: "/v1/sessions", body: { session_id: "fork" } });
  const sent = { method: "POST", path: `${path}/fork`, body: { session_id: "f" }, basePath };
  expect(await call(handler, sent)).toMatchObject({ status: 201, headers: { location } });
});
