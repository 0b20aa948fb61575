/** Two turns of one session at once: what `on_busy` says is done, through the whole service. */
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Sent } from "../support/http.ts";
import {
  busyService,
  HEAD,
  keyed,
  MESSAGES,
  oneTurn,
  passUntil,
  passUntilAnswered,
  TURNS,
  turn,
  workingService,
} from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { dataOf, fieldsOf } from "./talk.ts";

const onBusy = (on_busy: string, input = "next"): Sent => turn(input, {}, { on_busy });

describe.each(storeKinds())("while a turn runs on $name, on_busy", ({ open }) => {
  let store: SessionStore;
  beforeEach(async () => {
    store = (await open())();
  });

  /** The store, and how often a session was looked at since. */
  const watched = () => {
    let looks = 0;
    const read: SessionStore["read"] = (key) => {
      looks++;
      return store.read(key);
    };
    return { store: { ...store, read }, looks: () => looks };
  };

  test("reject refuses another one, as no on_busy does", async () => {
    const { handler, model, running, finish } = await busyService({ store });
    for (const request of [turn("next"), onBusy("reject")]) {
      const refused = await call(handler, request);
      expect(refused).toMatchObject({ status: 409, json: { code: "session_busy" } });
      expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    }
    expect(model.calls).toHaveLength(1);
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2, final: "at last" } });
  });

  test("wait runs it behind, on the history that it left", async () => {
    const { store: seen, looks } = watched();
    const { handler, model, clock, running, finish } = await busyService({ store: seen });
    const waiting = call(handler, onBusy("wait"));
    await passUntil(clock, () => looks() >= 3);
    expect(model.calls).toHaveLength(1);
    finish();
    expect((await running).json).toMatchObject({ version: 2 });
    const waited = await passUntilAnswered(clock, waiting);
    expect(waited).toMatchObject({
      status: 200,
      json: { version: 3, final: "ok", finish: "final", replayed: false },
    });
    expect(model.calls[1]?.messages.map(({ content }) => content)).toEqual([
      "hi",
      "at last",
      "next",
    ]);
  });

  test("wait lets each of several have its place", async () => {
    const { handler, model, clock, running, finish } = await busyService({ store });
    const inputs = ["a", "b", "c"];
    const waiting = Promise.all(inputs.map((input) => call(handler, onBusy("wait", input))));
    finish();
    await running;
    let isDone = false;
    const answers = waiting.finally(() => {
      isDone = true;
    });
    await passUntil(clock, () => isDone);
    const versions = (await answers).map(({ json }) => Number(json["version"]));
    expect(versions.toSorted((one, other) => one - other)).toEqual([3, 4, 5]);
    expect(model.calls).toHaveLength(4);
    const { json } = await call(handler, MESSAGES);
    const asked = dataOf(json["data"]).flatMap((message) => {
      const { role, content } = fieldsOf(message);
      return role === "user" ? [content] : [];
    });
    const inOrder = inputs.toSorted(
      (one, other) => (versions[inputs.indexOf(one)] ?? 0) - (versions[inputs.indexOf(other)] ?? 0),
    );
    expect(asked).toEqual(["hi", ...inOrder]);
  });

  test.each([
    ["another turn", onBusy("wait"), "session_busy"],
    ["the same", turn("hi", { "idempotency-key": "k" }, { on_busy: "wait" }), "turn_in_progress"],
  ])("wait gives up before its own end, without a model call: %s", async (_, request, code) => {
    const { handler, model, clock, running, finish } = await busyService({ store });
    const waiting = call(handler, { ...request, remainingMs: 3000 });
    const refused = await passUntilAnswered(clock, waiting);
    expect(refused).toMatchObject({ status: 409, json: { code } });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThanOrEqual(1);
    expect(model.calls).toHaveLength(1);
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2 } });
  });

  test("wait gives a turn's own retry its result", async () => {
    const { handler, model, clock, running, finish } = await busyService({ store });
    const retry = call(handler, turn("hi", { "idempotency-key": "k" }, { on_busy: "wait" }));
    finish();
    const { json } = await running;
    expect((await passUntilAnswered(clock, retry)).json).toEqual({ ...json, replayed: true });
    expect(model.calls).toHaveLength(1);
  });

  test("interrupt keeps what the turn had done, and goes on behind it", async () => {
    const { handler, model, running, finish, starts } = await workingService({ store });
    expect(await call(handler, onBusy("interrupt"))).toMatchObject({
      status: 200,
      json: { version: 3, final: "ok" },
    });
    const kept = [
      { role: "user", content: "hi" },
      { role: "assistant", tool_calls: [{ id: "c", name: "work", arguments: {} }] },
      { role: "tool", content: expect.stringMatching(/interrupted/), tool_call_id: "c" },
      { role: "assistant", content: "(interrupted)" },
    ];
    const { json } = await call(handler, MESSAGES);
    expect(json["data"]).toMatchObject([
      ...kept,
      { role: "user", content: "next" },
      { role: "assistant", content: "ok" },
    ]);
    expect(model.calls[1]?.messages).toHaveLength(5);
    finish();
    const interrupted = {
      turn_id: "k",
      version: 2,
      final: "",
      finish: "interrupted",
      steps: [
        { index: 0, kind: "tool_call", detail: expect.stringMatching(/^work -> error: interr/) },
        { index: 1, kind: "error", detail: "(interrupted)" },
      ],
      messages: kept,
    };
    expect(await running).toMatchObject({ status: 200, json: interrupted });
    expect(await call(handler, keyed("k"))).toMatchObject({
      status: 200,
      json: { ...interrupted, replayed: true },
    });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({
      ...interrupted,
      status: "done",
    });
    expect((await call(handler, TURNS)).json["data"]).toMatchObject([
      { turn_id: "k", status: "done", finish: "interrupted" },
      { version: 3, finish: "final" },
    ]);
    expect(starts()).toBe(1);
  });

  test("rollback drops it, and doesn't let its tools run again", async () => {
    const { handler, model, running, finish, starts } = await workingService({ store });
    expect(await call(handler, onBusy("rollback"))).toMatchObject({
      status: 200,
      json: { version: 2, final: "ok" },
    });
    finish();
    const superseded = { status: 409, json: { code: "turn_superseded" } };
    expect(await running).toMatchObject(superseded);
    const asked = model.calls.length;
    expect(await call(handler, keyed("k"))).toMatchObject(superseded);
    expect(model.calls).toHaveLength(asked);
    expect((await call(handler, MESSAGES)).json["data"]).toMatchObject([
      { content: "next" },
      { content: "ok" },
    ]);
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({ status: "failed" });
    expect(starts()).toBe(1);
  });

  test.each(["interrupt", "rollback"])(
    "%s drops a turn that has done nothing yet, whose retry runs afresh",
    async (what) => {
      const { handler, running, finish } = await busyService({ store });
      expect((await call(handler, onBusy(what))).json).toMatchObject({ version: 2, final: "ok" });
      finish();
      expect(await running).toMatchObject({ status: 409, json: { code: "turn_superseded" } });
      expect((await call(handler, oneTurn("k"))).status).toBe(404);
      expect(await call(handler, keyed("k"))).toMatchObject({
        status: 200,
        json: { version: 3, final: "ok", replayed: false },
      });
    },
  );

  test.each(["interrupt", "rollback"])("%s doesn't stop the very same turn", async (what) => {
    const { handler, running, finish, starts } = await workingService({ store });
    const retry = turn("hi", { "idempotency-key": "k" }, { on_busy: what });
    const refused = await call(handler, retry);
    expect(refused).toMatchObject({ status: 409, json: { code: "turn_in_progress" } });
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2, finish: "final" } });
    expect(starts()).toBe(1);
  });

  test.each(["wait", "interrupt", "rollback"])(
    "%s changes nothing where nobody runs",
    async (what) => {
      const { handler, running, finish } = await busyService({ store });
      finish();
      await running;
      expect((await call(handler, onBusy(what))).json).toMatchObject({ version: 3, final: "ok" });
      expect((await call(handler, HEAD)).json).toMatchObject({ message_count: 4, turn: null });
    },
  );
});

describe.each(storeKinds())("a turn that runs out of time on $name", ({ open }) => {
  test("says so in time, and its key goes on behind the tool that was done", async () => {
    const store = (await open())();
    const asked = Promise.withResolvers<void>();
    const hang = (): Promise<never> => {
      asked.resolve();
      return new Promise(() => {});
    };
    const { handler, model, clock, running, finish, starts } = await workingService({
      store,
      remainingMs: 8000,
      next: [hang],
    });
    finish();
    await asked.promise;
    clock.advance(7900);
    const timedOut = await running;
    expect(timedOut).toMatchObject({ status: 504, json: { code: "turn_timeout" } });
    expect(timedOut.headers["retry-after"]).toBe("1");
    expect((await call(handler, HEAD)).json).toMatchObject({
      version: 1,
      turn: { turn_id: "k", status: "interrupted", input: "hi" },
    });
    const worked = { index: 0, kind: "tool_call", detail: "work -> worked" };
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({
      status: "interrupted",
      steps: [worked],
    });
    expect(await call(handler, keyed("k"))).toMatchObject({
      status: 200,
      json: {
        version: 2,
        final: "ok",
        replayed: false,
        steps: [worked, { index: 1, kind: "final", detail: "ok" }],
      },
    });
    expect(model.calls).toHaveLength(3);
    expect(starts()).toBe(1);
  });

  test("in a tool call doesn't repeat it: its key tells the model that nobody knows", async () => {
    const store = (await open())();
    const { handler, model, clock, running, starts } = await workingService({
      store,
      remainingMs: 8000,
    });
    clock.advance(7900);
    expect((await running).status).toBe(504);
    const { json } = await call(handler, keyed("k"));
    expect(json).toMatchObject({ version: 2, final: "ok", finish: "final" });
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({
      role: "tool",
      content: expect.stringMatching(/outcome is unknown/),
    });
    expect(starts()).toBe(1);
  });
});
