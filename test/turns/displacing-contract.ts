/** What holds on every store of turns that interrupt the running one, or roll it back. */
import { beforeAll, describe, expect, test } from "vitest";
import { INTERRUPTED } from "../../lib/agent/results.ts";
import { modelView } from "../../lib/agent/view.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import {
  TurnInProgressError,
  TurnSupersededError,
  VersionMismatchError,
} from "../../lib/turns/errors.ts";
import {
  busyScene,
  death,
  gate,
  HEARTBEAT_MS,
  LEASE_OVER_MS,
  scene,
  steps,
  times,
  USAGE,
} from "./scene.ts";

export const displacingContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });

  describe(`interrupting on ${name}`, () => {
    test("a turn in its tools: its steps stand in the history, whole, and all its callers get them", async () => {
      const it = await busyScene(store, { turnId: "a" }, { system: "Be kind." });
      const second = await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect(second).toMatchObject({ final: "done", version: 3 });
      const messages = await it.messages();
      expect(messages.map(({ role, content }) => `${role}: ${content}`)).toEqual([
        ...["system: Be kind.", "user: long work", "assistant: ", "tool: put done", "assistant: "],
        ...[`tool: ${INTERRUPTED}`, `tool: ${INTERRUPTED}`, "assistant: (interrupted)"],
        ...["user: stop that", "assistant: done"],
      ]);
      expect(modelView(messages)).toEqual(messages);
      expect(it.model.calls.at(-1)?.messages).toEqual(messages.slice(0, -1));
      expect((await it.head()).counts).toMatchObject({ messages: 10, turns: 2 });

      it.clock.advance(HEARTBEAT_MS);
      const first = await it.running;
      expect(first).toMatchObject({
        ...{ turnId: "a", version: 2, final: "", finish: "interrupted", replayed: false },
        ...{ messages: messages.slice(0, 8), usage: { inputTokens: 20, outputTokens: 2 } },
      });
      expect(first.steps.at(-1)).toEqual({ index: 2, kind: "error", detail: "(interrupted)" });
      const again = await it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      expect(again).toEqual({ ...first, replayed: true });
      expect(it.ran.map((run) => run.name)).toEqual(["put", "read", "pay"]);
    });

    test("a turn with results that are stored already keeps them", async () => {
      const way = gate();
      const plan = steps(["put", "pay"]);
      const it = scene(store, {
        replies: [plan, () => way.pass().then(() => assistantMessage("too late")), steps()],
      });
      const running = it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      running.catch(() => {});
      await way.arrived;
      await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      way.open();
      expect(await running).toMatchObject({ finish: "interrupted", usage: USAGE, version: 2 });
      expect((await it.messages()).map(({ content }) => content)).toEqual([
        ...["long work", "", "put done", "pay done", "(interrupted)", "stop that", "done"],
      ]);
    });

    test("a turn that stores results meanwhile loses none of them", async () => {
      const way = gate();
      const { die, reached } = death();
      const it = scene(store, {
        replies: [steps(["pay"]), die, steps()],
        does: () => way.pass().then(() => "paid"),
      });
      void it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      await way.arrived;
      let looks = 0;
      const through: Partial<SessionStore> = {
        openTurn: async (head) => {
          const kept = await store.openTurn(head);
          // What was seen is no longer so when it is to be displaced.
          if (looks++ === 0) {
            way.open();
            await reached;
            await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
          }
          return kept;
        },
      };
      await it.runner(through).run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect(looks).toBe(2);
      expect((await it.messages()).map(({ content }) => content)).toEqual([
        ...["long work", "", "paid", "(interrupted)", "stop that", "done"],
      ]);
    });

    test("a turn that went on as it was looked at is looked at again", async () => {
      const it = await busyScene(store, { turnId: "a" });
      let looks = 0;
      const through: Partial<SessionStore> = {
        openTurn: (head) => (looks++ === 0 ? Promise.resolve(undefined) : store.openTurn(head)),
      };
      await it.runner(through).run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect(looks).toBe(2);
      expect((await it.history()).map(({ finish }) => finish)).toEqual(["interrupted", "final"]);
    });

    test("turn after turn leaves HEAD small, and the history whole", async () => {
      const it = scene(store, { replies: times(30, steps(["put"])) });
      const inputs = Array.from({ length: 12 }, (_, n) => `${n}: ${"word ".repeat(100)}`);
      for (const [n, input] of inputs.entries()) {
        const { die, reached } = death();
        const checkpoint: SessionStore["checkpoint"] = (write) => store.checkpoint(write).then(die);
        const turn = { ...it.key, turnId: `t${n}`, input, onBusy: "interrupt" } as const;
        void it.runner({ checkpoint }).run(turn);
        await reached;
      }
      const { version, tailFrom } = await it.head();
      expect(version - tailFrom).toBeLessThan(6);
      await it.runner().run({ ...it.key, input: "the last", onBusy: "interrupt" });
      const asked = (await it.history()).map(({ messages }) => messages[0]?.content);
      expect(asked).toEqual([...inputs, "the last"]);
      const again = await it.runner().run({ ...it.key, turnId: "t0", input: inputs[0] ?? "" });
      expect(again).toMatchObject({ finish: "interrupted", version: 2, replayed: true });
    });

    test("a turn in its first model call drops it, and its next try runs afresh", async () => {
      const it = await busyScene(store, { at: "model", turnId: "a" });
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect((await it.messages()).map(({ content }) => content)).toEqual(["stop that", "done"]);
      it.clock.advance(HEARTBEAT_MS);
      await expect(it.running).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toEqual([]);
      it.finish();
      const again = await it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      expect(again).toMatchObject({ final: "done", version: 3, replayed: false });
    });

    test("a turn that was to take an earlier one's place leaves that one where it is", async () => {
      const it = await busyScene(store, { at: "model", turnId: "a" });
      it.finish();
      await it.running;
      const way = gate();
      const busy = scene(store, { replies: times(9, steps(["pay"])), does: way.pass });
      const replacing = { ...it.key, turnId: "b", input: "work", supersedes: "a" };
      const running = busy.runner().run(replacing);
      running.catch(() => {});
      await way.arrived;
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect((await it.history()).map(({ turnId }) => turnId)).toEqual(["a", expect.any(String)]);
      expect((await it.messages()).map(({ content }) => content)).toContain("long work");
      busy.clock.advance(HEARTBEAT_MS);
      await expect(running).rejects.toThrow(TurnSupersededError);
      await expect(it.runner().run(replacing)).rejects.toThrow(/given up/);
      expect(busy.ran).toHaveLength(1);
    });

    test("a turn without an id of its caller's keeps its steps too", async () => {
      const it = await busyScene(store);
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      it.clock.advance(HEARTBEAT_MS);
      const first = await it.running;
      expect(first).toMatchObject({ finish: "interrupted", version: 2, replayed: false });
      expect((await it.history())[0]?.turnId).toBe(first.turnId);
    });

    test("what nobody runs any more leaves it out, as every next turn does", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: [steps(["pay"]), steps()], does: die });
      void it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect((await it.messages()).map(({ content }) => content)).toEqual(["stop that", "done"]);
    });

    test("two at once: one has the session in the end, and the first turn is interrupted once", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const way = gate();
      const rivals = scene(store, { replies: times(2, () => way.pass().then(() => steps()([]))) });
      const turns = ["b", "c"].map((input) =>
        rivals.runner().run({ ...it.key, turnId: input, input, onBusy: "interrupt" }),
      );
      const outcomes = Promise.allSettled(turns);
      await expect.poll(async () => (await it.head()).fence).toBe(3);
      way.open();
      const [lost, done] = (await outcomes).toSorted((a, b) => (a.status > b.status ? -1 : 1));
      expect(lost).toMatchObject({ reason: expect.any(TurnSupersededError) });
      expect(done).toMatchObject({ value: { version: 3, final: "done" } });
      const history = await it.history();
      expect(history.map(({ finish }) => finish)).toEqual(["interrupted", "final"]);
      it.clock.advance(HEARTBEAT_MS);
      expect(await it.running).toMatchObject({ finish: "interrupted", version: 2 });
    });

    test("at a version asked for: the one before the interrupted turn went into the history", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const { run } = it.runner();
      const stop = { ...it.key, input: "stop that", onBusy: "interrupt" } as const;
      const before = await it.head();
      await expect(run({ ...stop, ifMatch: { version: 2 } })).rejects.toThrow(VersionMismatchError);
      expect(await it.head()).toEqual(before);
      expect(await run({ ...stop, ifMatch: { version: 1 } })).toMatchObject({ version: 3 });
    });

    test("itself is refused: the turn runs already", async () => {
      const it = await busyScene(store, { turnId: "a" });
      for (const onBusy of ["interrupt", "rollback"] as const) {
        const same = it.runner().run({ ...it.key, turnId: "a", input: "long work", onBusy });
        await expect(same).rejects.toThrow(TurnInProgressError);
      }
      it.finish();
      expect(await it.running).toMatchObject({ final: "done" });
    });
  });

  describe(`rolling back on ${name}`, () => {
    test("a turn with steps drops it for good", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const { run } = it.runner();
      expect(await run({ ...it.key, input: "stop", onBusy: "rollback" })).toMatchObject({
        version: 2,
      });
      expect((await it.messages()).map(({ content }) => content)).toEqual(["stop", "done"]);
      it.clock.advance(HEARTBEAT_MS);
      await expect(it.running).rejects.toThrow(TurnSupersededError);
      await expect(run({ ...it.key, turnId: "a", input: "long work" })).rejects.toThrow(/given up/);
      expect(it.ran.map((run) => run.name)).toEqual(["put", "read", "pay"]);
    });

    test("a turn without steps drops it, and its next try runs afresh", async () => {
      const it = await busyScene(store, { at: "model", turnId: "a" });
      const { run } = it.runner();
      await run({ ...it.key, input: "stop", onBusy: "rollback" });
      it.clock.advance(HEARTBEAT_MS);
      await expect(it.running).rejects.toThrow(TurnSupersededError);
      it.finish();
      expect(await run({ ...it.key, turnId: "a", input: "long work" })).toMatchObject({
        version: 3,
      });
    });

    test("a turn without an id of its caller's leaves no record", async () => {
      const it = await busyScene(store);
      await it.runner().run({ ...it.key, turnId: "b", input: "stop", onBusy: "rollback" });
      it.clock.advance(HEARTBEAT_MS);
      await expect(it.running).rejects.toThrow(TurnSupersededError);
      expect((await it.head()).recent.size).toBe(1);
      expect(await it.history()).toHaveLength(1);
    });
  });

  describe(`a turn that is displaced by its own process, on ${name}`, () => {
    test.each(["interrupt", "rollback"] as const)("%s stops it at once", async (onBusy) => {
      const it = await busyScene(store, { turnId: "a" });
      await it.own.run({ ...it.key, input: "stop", onBusy });
      const [first] = await Promise.allSettled([it.running]);
      if (onBusy === "interrupt") expect(first).toMatchObject({ value: { finish: "interrupted" } });
      else expect(first).toMatchObject({ reason: expect.any(TurnSupersededError) });
      expect(it.clock.sleepers()).toBe(0);
    });
  });
};
