import { describe, expect, test } from "vitest";
import { assistantMessage } from "../../lib/session/message.ts";
import { call, type Sent, service } from "../support/http.ts";
import {
  busyService,
  cancel,
  fork,
  HEAD,
  keyed,
  LIST,
  MESSAGES,
  oneTurn,
  patch,
  TURNS,
  turn,
} from "./requests.ts";

describe("while a turn runs", () => {
  test("another one is refused before its model is asked, and told when to come back", async () => {
    const { handler, model, running, finish } = await busyService();
    const refused = await call(handler, turn("another"));
    expect(refused).toMatchObject({ status: 409, json: { code: "session_busy" } });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(model.calls).toHaveLength(1);
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2, final: "at last" } });
    expect(await call(handler, turn("another"))).toMatchObject({
      status: 200,
      json: { version: 3 },
    });
  });

  test("its own retry is told that it runs already, and gets its result afterwards", async () => {
    const { handler, running, finish } = await busyService();
    const early = await call(handler, keyed("k"));
    expect(early).toMatchObject({ status: 409, json: { code: "turn_in_progress" } });
    expect(Number(early.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    finish();
    const { json } = await running;
    expect((await call(handler, keyed("k"))).json).toEqual({ ...json, replayed: true });
  });

  test("the session shows it as running, as interrupted once its lease is over, and not any more when it is done", async () => {
    const { handler, clock, running, finish } = await busyService();
    expect((await call(handler, HEAD)).json).toMatchObject({
      version: 1,
      message_count: 0,
      turn: { turn_id: "k", status: "running", input: "hi" },
    });
    expect((await call(handler, MESSAGES)).json["data"]).toEqual([]);
    clock.advance(60_000, { wake: false });
    expect((await call(handler, HEAD)).json).toMatchObject({
      turn: { turn_id: "k", status: "interrupted" },
    });
    finish();
    await running;
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 2, turn: null });
  });

  test("a turn that loses its session to another one says so, and leaves nothing", async () => {
    const { handler, clock, running, finish } = await busyService();
    clock.advance(60_000, { wake: false });
    expect((await call(handler, turn("taken over"))).status).toBe(200);
    finish();
    expect(await running).toMatchObject({ status: 409, json: { code: "turn_superseded" } });
    expect((await call(handler, MESSAGES)).json["data"]).toMatchObject([
      { content: "taken over" },
      { content: "ok" },
    ]);
  });

  test("a session that is deleted stays deleted", async () => {
    const { handler, running, finish } = await busyService();
    expect((await call(handler, { ...HEAD, method: "DELETE" })).status).toBe(204);
    finish();
    expect(await running).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect((await call(handler, HEAD)).status).toBe(404);
  });
});

describe("the order of checks", () => {
  test.each<[string, Sent]>([
    ["a bad id", { ...turn("hi"), path: "/v1/sessions/a%20b/turns" }],
    ["a bad percent sequence", { ...turn("hi"), path: "/v1/sessions/%zz/turns" }],
    ["a bad body", { ...turn("hi"), body: "{" }],
    ["a bad content type", turn("hi", { "content-type": "text/plain" })],
    ["a bad key", keyed("~")],
    ["a bad cursor", { ...MESSAGES, query: { cursor: "x" } }],
    ["a bad cursor of turns", { ...TURNS, query: { cursor: "x" } }],
    ["a bad cursor of the list", { ...LIST, query: { cursor: "x" } }],
    ["a bad limit of the list", { ...LIST, query: { limit: "101" } }],
    ["a bad patch", patch({ metadata: 1 })],
    ["a bad fork", fork({ at_turn: 1 })],
    ["a bad on_busy", turn("hi", {}, { on_busy: 1 })],
    ["a bad cancel", cancel("k", [])],
    ["a turn that there isn't", oneTurn("k")],
    ["a bad percent sequence for a turn", { ...HEAD, path: "/v1/sessions/s/turns/%zz" }],
    ["a bad snapshot", { method: "PUT", path: "/v1/sessions/s/snapshot", body: {} }],
    ["a bad new session", { method: "POST", path: "/v1/sessions", body: "[]" }],
  ])("asks who calls before it looks at %s", async (_, request) => {
    const { handler } = service();
    expect((await call(handler, { ...request, owner: null })).status).toBe(401);
    expect([400, 404, 415, 422]).toContain((await call(handler, request)).status);
  });

  test.each<[string, Sent]>([
    ["limit", { ...MESSAGES, query: { limit: "0" } }],
    ["the limit of turns", { ...TURNS, query: { limit: "0" } }],
    ["a patch", patch({ metadata: [] })],
    ["a patch's If-Match", patch({ metadata: {} }, { "if-match": "x" })],
    ["a fork's turn", fork({ at_turn: "" })],
    ["a fork's id", fork({ session_id: "a b" })],
    ["a cancel's body", cancel("k", { x: 1 })],
    ["a turn's percent sequences", { ...HEAD, path: "/v1/sessions/s/turns/%zz" }],
    ["If-Match", { ...HEAD, method: "DELETE", headers: { "if-match": "x" } }],
  ])("looks at %s before it looks for the session", async (_, request) => {
    expect((await call(service().handler, request)).status).toBe(400);
  });

  test("looks for the session before it compares versions or looks for a turn", async () => {
    const { handler } = service();
    for (const request of [
      patch({ metadata: {} }, { "if-match": '"1.1"' }),
      fork({ at_turn: "k" }),
      { ...HEAD, method: "DELETE", headers: { "if-match": '"1.1"' } },
    ]) {
      expect((await call(handler, request)).status).toBe(404);
    }
  });

  test("looks for a fork's turn before it looks whether its id is taken", async () => {
    const { handler } = service();
    await call(handler, keyed("k"));
    expect((await call(handler, fork({ at_turn: "x", session_id: "s" }))).status).toBe(400);
    expect((await call(handler, fork({ at_turn: "k", session_id: "s" }))).status).toBe(409);
  });

  test("looks at a snapshot and at a new session before it looks whether there is one", async () => {
    const { handler } = service();
    await call(handler, turn("hi"));
    expect(
      (await call(handler, { method: "PUT", path: "/v1/sessions/s/snapshot", body: {} })).status,
    ).toBe(422);
    const body = { session_id: "s", metadata: 1 };
    expect((await call(handler, { method: "POST", path: "/v1/sessions", body })).status).toBe(400);
  });

  test("recognises a known turn before it compares versions", async () => {
    const { handler } = service();
    await call(handler, keyed("k"));
    const stale = { "Idempotency-Key": "k", "If-Match": '"7"' };
    expect(await call(handler, turn("hi", stale))).toMatchObject({
      status: 200,
      json: { replayed: true },
    });
    expect((await call(handler, turn("bye", stale))).status).toBe(422);
  });

  test("recognises a known turn, and compares versions, before it looks whether the session is busy", async () => {
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { handler } = service({
      replies: [
        assistantMessage("first"),
        async () => {
          asked.resolve();
          await gate.promise;
          return assistantMessage("second");
        },
      ],
    });
    await call(handler, keyed("k"));
    const running = call(handler, turn("slow"));
    await asked.promise;
    expect(await call(handler, keyed("k"))).toMatchObject({
      status: 200,
      json: { replayed: true },
    });
    expect((await call(handler, turn("x", { "If-Match": '"9"' }))).status).toBe(412);
    expect((await call(handler, turn("x", { "If-Match": '"2"' }))).status).toBe(409);
    gate.resolve();
    expect((await running).status).toBe(200);
  });

  test("looks at the size of an input before it looks for the session", async () => {
    const { handler } = service({ maxInputBytes: 4 });
    const refused = await call(handler, turn("12345", { "If-Match": '"1"' }));
    expect(refused).toMatchObject({ status: 413, json: { code: "too_large" } });
  });
});
