import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { assistantMessage } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { claimOn, openTurn } from "../support/heads.ts";
import { call, service } from "../support/http.ts";
import { KEY, told } from "./one-turn.ts";
import { busyService, HEAD, keyed, oneTurn, TURNS, turn, workingService } from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { allOf, question, talkative } from "./talk.ts";

describe.each(storeKinds())("an unfinished turn on $name", ({ open }) => {
  let store: SessionStore;
  beforeEach(async () => {
    store = (await open())();
  });

  test("is running, with the steps that it has done", async () => {
    const { handler, running, finish } = await workingService({ store });
    expect((await call(handler, oneTurn("k"))).json).toEqual({
      turn_id: "k",
      session_id: "s",
      status: "running",
      input: "hi",
      started_at: "2100-12-01T12:00:00.000000+00:00",
      supersedes: null,
      // Its tool hasn't returned.
      steps: [{ index: 0, kind: "tool_call", detail: "work" }],
    });
    expect((await call(handler, HEAD)).json).toMatchObject({
      turn: { turn_id: "k", status: "running", input: "hi" },
    });
    finish();
    const { json } = await running;
    const [listed] = await allOf(handler, TURNS);
    expect((await call(handler, oneTurn("k"))).json).toEqual(told(listed, json));
  });

  test("is interrupted once its lease is over, until somebody goes on with it", async () => {
    const { handler, clock, running, finish } = await busyService({ store });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({ status: "running" });
    clock.advance(60_000, { wake: false });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({
      status: "interrupted",
      input: "hi",
      steps: [],
    });
    expect((await call(handler, HEAD)).json).toMatchObject({
      turn: { turn_id: "k", status: "interrupted" },
    });
    const resumed = await call(handler, keyed("k"));
    expect(resumed.json).toMatchObject({ replayed: false, final: "ok" });
    const { replayed: _, ...result } = resumed.json;
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({ status: "done", ...result });
    finish();
    await running;
  });

  test("tells which turn it is to replace", async () => {
    const asked = Promise.withResolvers<void>();
    const hang = (): Promise<never> => {
      asked.resolve();
      return new Promise(() => {});
    };
    const { handler } = service({ store, replies: [assistantMessage("ok"), hang] });
    await call(handler, keyed("one"));
    const better = turn("better", { "idempotency-key": "two" }, { supersedes: "one" });
    void call(handler, better);
    await asked.promise;
    expect((await call(handler, oneTurn("two"))).json).toMatchObject({ supersedes: "one" });
    expect((await call(handler, oneTurn("one"))).json).toMatchObject({ superseded: false });
  });

  test("has its whole input, of which HEAD has the beginning", async () => {
    const input = randomBytes(20_000).toString("base64");
    const asked = Promise.withResolvers<void>();
    const { handler } = service({
      store,
      maxInputBytes: 100_000,
      replies: [
        () => {
          asked.resolve();
          return new Promise(() => {});
        },
      ],
    });
    void call(handler, keyed("k", input));
    await asked.promise;
    const { json } = await call(handler, oneTurn("k"));
    expect(json).toMatchObject({ status: "running", input });
    expect(json).not.toHaveProperty("truncated");
  });

  test("has the beginning of its input, and says so, until it is stored whole", async () => {
    const input = randomBytes(20_000).toString("base64");
    const claimed = Promise.withResolvers<void>();
    const saveInput = (): Promise<never> => {
      claimed.resolve();
      return new Promise(() => {});
    };
    const { handler } = service({ store: { ...store, saveInput }, maxInputBytes: 100_000 });
    void call(handler, keyed("k", input));
    await claimed.promise;
    const found = await call(handler, oneTurn("k"));
    expect(found).toMatchObject({ status: 200, json: { status: "running", steps: [] } });
    const beginning = String(found.json["input"]);
    expect(beginning.length).toBeGreaterThan(100);
    expect(input.startsWith(beginning)).toBe(true);
    expect(found.json["truncated"] === true).toBe(beginning !== input);
  });

  test("is failed once another one took its place, if its tools may have run", async () => {
    const { handler, clock } = await workingService({ store });
    clock.advance(60_000, { wake: false });
    expect((await call(handler, turn("next"))).status).toBe(200);
    expect((await call(handler, oneTurn("k"))).json).toEqual({
      turn_id: "k",
      session_id: "s",
      status: "failed",
      error: { code: "turn_superseded", detail: expect.stringContaining("given up") },
    });
  });

  test("is failed for good, when its record has left HEAD too", async () => {
    const { handler, clock } = await workingService({ store });
    clock.advance(60_000, { wake: false });
    for (let n = 0; n < 8; n++) await call(handler, keyed(`n-${n}`, `${n}`.repeat(900)));
    const head = await store.read(KEY);
    expect(head?.tailFrom).toBeGreaterThan(2);
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({ status: "failed" });
  });

  test("isn't there any more once another one took its place, if it had done nothing", async () => {
    const { handler, clock } = await busyService({ store });
    clock.advance(60_000, { wake: false });
    await call(handler, turn("next"));
    expect((await call(handler, oneTurn("k"))).status).toBe(404);
  });

  test("that was a late delivery of an old one is that one, also if its runner died", async () => {
    const { handler, clock } = talkative(store);
    for (let n = 1; n <= 8; n++) await call(handler, question("s", `k-${n}`));
    const done = await call(handler, oneTurn("k-1"));
    expect(done.json).toMatchObject({ status: "done", version: 2 });
    const claim = claimOn(KEY, { open: openTurn({ turnId: "k-1" }), nowMs: clock.nowMs() });
    expect((await store.claim(claim)).applied).toBe(true);
    expect((await call(handler, oneTurn("k-1"))).json).toEqual(done.json);
  });
});
