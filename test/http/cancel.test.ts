import { beforeEach, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Sent, service } from "../support/http.ts";
import {
  busyService,
  cancel,
  HEAD,
  keyed,
  MESSAGES,
  oneTurn,
  turn,
  workingService,
} from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { fieldsOf, question, talkative } from "./talk.ts";

const SUPERSEDED = { status: 409, json: { code: "turn_superseded" } };

describe.each(storeKinds())("cancelling a turn on $name", ({ open }) => {
  let store: SessionStore;
  beforeEach(async () => {
    store = (await open())();
  });

  test("frees the session at once, and leaves nothing of the turn in the history", async () => {
    const { handler, running, finish, starts } = await workingService({ store });
    const cancelled = await call(handler, cancel("k"));
    expect(cancelled).toMatchObject({ status: 204, text: "" });
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 1, turn: null });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({
      turn_id: "k",
      status: "failed",
      error: { code: "turn_superseded" },
    });
    expect((await call(handler, turn("next"))).json).toMatchObject({ version: 2, final: "ok" });
    finish();
    expect(await running).toMatchObject(SUPERSEDED);
    expect((await call(handler, MESSAGES)).json["data"]).toMatchObject([
      { content: "next" },
      { content: "ok" },
    ]);
    expect(starts()).toBe(1);
  });

  test("stops a runner in another process, which waits for its tool, within half a lease", async () => {
    const { clock, running } = await workingService({ store });
    expect((await call(service({ store }).handler, cancel("k"))).status).toBe(204);
    clock.advance(15_000);
    expect(await running).toMatchObject(SUPERSEDED);
  });

  test("keeps the turn from being run again, also if it had done nothing", async () => {
    const { handler, model, running, finish } = await busyService({ store });
    expect((await call(handler, cancel("k"))).status).toBe(204);
    expect(await call(handler, keyed("k"))).toMatchObject(SUPERSEDED);
    finish();
    expect(await running).toMatchObject(SUPERSEDED);
    expect(model.calls).toHaveLength(1);
  });

  test("ends a turn that a dead runner left", async () => {
    const { handler, clock } = await workingService({ store });
    clock.advance(60_000, { wake: false });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({ status: "interrupted" });
    expect((await call(handler, cancel("k"))).status).toBe(204);
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 1, turn: null });
    expect(await call(handler, keyed("k"))).toMatchObject(SUPERSEDED);
  });

  test("takes an id that the service made itself, which the session's head tells", async () => {
    const asked = Promise.withResolvers<void>();
    const hang = (): Promise<never> => {
      asked.resolve();
      return new Promise(() => {});
    };
    const { handler, clock } = service({ store, replies: [hang] });
    const running = call(handler, turn("hi"));
    await asked.promise;
    const turnId = String(fieldsOf((await call(handler, HEAD)).json["turn"])["turn_id"]);
    expect(turnId).toMatch(/^~/);
    expect((await call(handler, oneTurn(turnId))).json).toMatchObject({ status: "running" });
    expect((await call(handler, cancel(turnId))).status).toBe(204);
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 1, turn: null });
    expect((await call(handler, oneTurn(turnId))).status).toBe(404);
    clock.advance(15_000);
    expect(await running).toMatchObject(SUPERSEDED);
  });

  test("may be repeated, and does nothing to a turn that has ended, however long ago", async () => {
    const { handler, running, finish } = await busyService({ store });
    finish();
    const { json } = await running;
    for (let times = 0; times < 2; times++) {
      expect((await call(handler, cancel("k"))).status).toBe(204);
    }
    expect((await call(handler, keyed("k"))).json).toEqual({ ...json, replayed: true });
    const talk = talkative(store);
    for (let n = 0; n < 8; n++) await call(talk.handler, question("s", `n-${n}`));
    expect((await store.read({ owner: "ann", sessionId: "s" }))?.tailFrom).toBeGreaterThan(2);
    expect((await call(handler, cancel("k"))).status).toBe(204);
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 10, turn: null });
  });

  test("leaves another turn alone that runs meanwhile", async () => {
    const { handler, running, finish } = await busyService({ store });
    for (const turnId of ["x", "~x", "K", "k "]) {
      const missed = await call(handler, cancel(turnId));
      expect(missed).toMatchObject({ status: 404, json: { code: "not_found" } });
    }
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2 } });
  });
});

describe("a cancel", () => {
  test.each([
    ["no body", undefined],
    ["an empty one", ""],
    ["an empty object", {}],
  ])("takes %s", async (_, body) => {
    const { handler } = await busyService();
    expect((await call(handler, cancel("k", body))).status).toBe(204);
  });

  test.each<[string, Sent, number]>([
    ["a field", cancel("k", { reason: "late" }), 400],
    ["__proto__", cancel("k", '{"__proto__":{}}'), 400],
    ["a list", cancel("k", []), 400],
    ["text", cancel("k", '"k"'), 400],
    ["what isn't JSON", cancel("k", "{"), 400],
    ["a form", cancel("k", "a=b", { "content-type": "application/x-www-form-urlencoded" }), 415],
  ])("refuses %s, and the turn goes on (X02, H04, H05)", async (_, request, status) => {
    const { handler, running, finish } = await busyService();
    expect((await call(handler, request)).status).toBe(status);
    finish();
    expect((await running).status).toBe(200);
  });

  test("says that it takes no field", async () => {
    const { json } = await call(service().handler, cancel("k", { reason: "late" }));
    expect(json["errors"]).toEqual([
      { path: "reason", message: "isn't a field of this request; it takes none" },
    ]);
  });

  test("finds neither a turn that there isn't nor a session that there isn't", async () => {
    const { handler } = service();
    const none = await call(handler, cancel("k"));
    expect(none).toMatchObject({ status: 404, json: { detail: "there is no session s" } });
    await call(handler, turn("hi"));
    const missed = await call(handler, cancel("k"));
    expect(missed).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(missed.json["detail"]).toBe("there is no turn k in this session");
  });
});
