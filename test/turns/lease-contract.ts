/** What holds on every store of runners that are late: paused past their lease, or at the end of their time. */
import { beforeAll, describe, expect, test } from "vitest";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import type { Renew, SessionStore } from "../../lib/store/store.ts";
import {
  TurnInProgressError,
  TurnSupersededError,
  TurnTimeoutError,
} from "../../lib/turns/errors.ts";
import { NOW_MS } from "../support/heads.ts";
import {
  calls,
  death,
  gate,
  LEASE_OVER_MS,
  quiet,
  type Scene,
  scene,
  sentTwice,
  steps,
  times,
  watchedStore,
} from "./scene.ts";

export const leaseContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });
  const request = { turnId: "k", input: "Hi" };
  const contentsOf = async (it: Scene) => (await it.messages()).map(({ content }) => content);

  describe(`a paused runner on ${name}`, () => {
    test("that wakes after another took over stores nothing, and starts no tool", async () => {
      const paused = gate();
      const it = scene(store, {
        replies: [() => paused.pass().then(() => calls("put", "pay")), steps()],
      });
      const turn = it.runner().run({ ...it.key, ...request });
      await paused.arrived;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      await it.runner().run({ ...it.key, input: "Hello?" });
      const after = await it.head();
      paused.open();
      await expect(turn).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toEqual([]);
      expect(await it.head()).toEqual(after);
    });

    test("that wakes while another try of its turn is at work leaves it to that one", async () => {
      const [paused, other] = [gate(), gate()];
      const it = scene(store, {
        replies: [
          () => paused.pass().then(() => calls("pay")),
          () => other.pass().then(() => assistantMessage("done")),
        ],
      });
      const turn = it.runner().run({ ...it.key, ...request });
      turn.catch(() => {});
      await paused.arrived;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const again = it.runner().run({ ...it.key, ...request });
      await other.arrived;
      paused.open();
      await expect(turn).rejects.toThrow(TurnInProgressError);
      other.open();
      expect(await again).toMatchObject({ final: "done", version: 2 });
      expect(it.ran).toEqual([]);
    });

    const renewals = [
      { how: "once", renew: (write: Renew) => store.renew(write) },
      { how: "twice", renew: (write: Renew) => sentTwice(store.renew)(write) },
    ];
    test.each(renewals)(
      "goes on where nobody took over, once it has extended its lease, sent $how",
      async ({ renew }) => {
        const paused = gate();
        const it = scene(store, {
          replies: [() => paused.pass().then(() => calls("read")), steps(["read"])],
        });
        const turn = it.runner({ renew }).run({ ...it.key, ...request });
        await paused.arrived;
        await expect.poll(() => it.clock.sleepers()).toBe(1);
        it.clock.advance(LEASE_OVER_MS);
        // It sleeps again once its heartbeat is answered: only then does it believe in the longer lease.
        await expect.poll(() => it.clock.sleepers()).toBe(1);
        expect((await it.head()).claim?.untilMs).toBe(it.clock.nowMs() + 32_000);
        paused.open();
        expect(await turn).toMatchObject({ final: "done", version: 2 });
      },
    );

    /** After the write is answered, and before anything else: the runner hasn't learned of it. */
    const pausedAfter = (it: Scene, ms: number): Partial<SessionStore> => ({
      checkpoint: async (write) => {
        const written = await store.checkpoint(write);
        it.clock.advance(ms, { wake: false });
        return written;
      },
    });

    test("starts no tool once its lease is over, though nobody took over yet", async () => {
      const it = scene(store, { replies: times(2, steps(["put", "pay"])) });
      const turn = it.runner(pausedAfter(it, 30_000)).run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
      expect(await it.head()).not.toHaveProperty("claim");
      await it.runner().run({ ...it.key, ...request });
      expect(await contentsOf(it)).toEqual(["Hi", "", "put done", OUTCOME_UNKNOWN, "done"]);
    });

    test("leaves its turn open, to be gone on with, also where it had kept nothing", async () => {
      const it = scene(store, {
        replies: times(3, (messages) => {
          if (it.model.calls.length === 1) it.clock.advance(30_000, { wake: false });
          return steps(["read"])(messages);
        }),
      });
      const turn = it.runner().run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
      const left = await it.head();
      expect(left.open).toMatchObject({ turnId: "k", steps: 0 });
      expect(left).not.toHaveProperty("claim");
      expect(await it.runner().run({ ...it.key, ...request })).toMatchObject({ final: "done" });
    });

    test("whose turn can't be asked for again is told that nothing of it is there", async () => {
      const it = scene(store, { replies: times(2, steps(["pay"])) });
      const turn = it.runner(pausedAfter(it, 30_000)).run({ ...it.key, input: "Hi" });
      await expect(turn).rejects.toThrow(TurnSupersededError);
    });

    test("starts no tool where its claim was granted long before it learned so", async () => {
      const it = scene(store, { replies: [steps(), steps(["read"])] });
      await it.runner().run({ ...it.key, input: "Hi" });
      const through: Partial<SessionStore> = {
        claim: async (write) => {
          await store.claim(write);
          it.clock.advance(30_000, { wake: false });
          return store.claim(write);
        },
      };
      const turn = it.runner(through).run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
    });

    test("starts its tools within its lease, which each checkpoint extends", async () => {
      const it = scene(store, {
        replies: times(2, (messages) => {
          if (it.model.calls.length === 1) it.clock.advance(20_000, { wake: false });
          return steps(["pay"])(messages);
        }),
      });
      await it.runner(pausedAfter(it, 29_999)).run({ ...it.key, ...request });
      expect(it.ran).toHaveLength(1);
    });

    test("starts no tool where another try of its turn has kept as many steps", async () => {
      const [paused, tool] = [gate(), gate()];
      const plan = steps(["pay"]);
      const it = scene(store, {
        replies: [() => paused.pass().then(() => calls("pay")), plan, plan],
        does: () => tool.pass().then(() => "paid"),
      });
      const turn = it.runner().run({ ...it.key, ...request });
      turn.catch(() => {});
      await paused.arrived;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const again = it.runner().run({ ...it.key, ...request });
      await tool.arrived;
      paused.open();
      await expect(turn).rejects.toThrow(TurnInProgressError);
      tool.open();
      expect(await again).toMatchObject({ final: "done" });
      expect(it.ran).toHaveLength(1);
    });

    test("starts no tool after its deadline, which is where its lease ended", async () => {
      const it = scene(store, { replies: times(2, steps(["pay"])) });
      const runner = it.runner(pausedAfter(it, 10_000));
      const turn = runner.run({ ...it.key, ...request, deadlineMs: NOW_MS + 10_000 });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
    });

    test("starts no tool again whose lease ended while the turn was restored", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: times(2, steps(["put"])), does: die });
      void it.runner().run({ ...it.key, ...request });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const through: Partial<SessionStore> = {
        openTurn: async (head) => {
          it.clock.advance(LEASE_OVER_MS, { wake: false });
          return store.openTurn(head);
        },
      };
      const turn = it.runner(through).run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toHaveLength(1);
    });
  });

  describe(`a turn that has to end, on ${name}`, () => {
    const ends = [
      { how: "at its deadline", error: new TurnTimeoutError() },
      { how: "as its caller aborts it", error: new Error("changed my mind") },
    ];
    test.each(ends)(
      "$how keeps what is done, and frees the session for its next try",
      async ({ error }) => {
        const isTimeout = error instanceof TurnTimeoutError;
        const caller = new AbortController();
        const { die, reached } = death();
        const signals: AbortSignal[] = [];
        const it = scene(store, {
          replies: times(2, steps(["put", "pay"])),
          does: (tool, { signal }) => signals.push(signal) && (tool === "pay" ? die() : "put done"),
        });
        const { run } = it.runner();
        const time = isTimeout ? { deadlineMs: NOW_MS + 28_000 } : { signal: caller.signal };
        const turn = run({ ...it.key, ...request, ...time });
        await reached;
        await quiet();
        if (isTimeout) it.clock.advance(22_000);
        else caller.abort(error);
        await expect(turn).rejects.toThrow(error);
        expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
        expect(await it.head()).not.toHaveProperty("claim");
        expect(await it.open()).toMatchObject({ steps: [{ results: ["put done", null] }] });
        expect(await it.history()).toEqual([]);

        await run({ ...it.key, ...request });
        expect(await contentsOf(it)).toEqual(["Hi", "", "put done", OUTCOME_UNKNOWN, "done"]);
        expect(it.ran).toHaveLength(2);
      },
    );

    test("whose commit is on its way is done", async () => {
      const way = gate();
      const it = scene(store);
      const through: Partial<SessionStore> = {
        commit: (write) => way.pass().then(() => store.commit(write)),
      };
      const turn = it.runner(through).run({ ...it.key, ...request, deadlineMs: NOW_MS + 28_000 });
      await way.arrived;
      it.clock.advance(28_000);
      way.open();
      expect(await turn).toMatchObject({ final: "done", version: 2 });
    });

    test.each([1, 2])(
      "while its claim is sent (%i times) asks no model, and leaves the session free",
      async (sends) => {
        const way = gate();
        const it = scene(store);
        await it.runner().run({ ...it.key, input: "Hi" });
        const before = await it.head();
        const through: Partial<SessionStore> = {
          claim: async (write) => {
            await way.pass();
            if (sends === 2) await store.claim(write);
            return store.claim(write);
          },
        };
        const turn = it.runner(through).run({ ...it.key, ...request, deadlineMs: NOW_MS + 28_000 });
        await way.arrived;
        it.clock.advance(28_000);
        way.open();
        await expect(turn).rejects.toThrow(TurnTimeoutError);
        expect(it.model.calls).toHaveLength(1);
        expect(await it.head()).toEqual({ ...before, fence: 2 });
      },
    );

    /** A session with old turns, and turn `k` open with a step. */
    const restored = async (replies: Parameters<typeof scene>[1]) => {
      const it = scene(store, replies);
      const { run } = it.runner();
      for (let n = 0; n < 6; n++)
        await run({ ...it.key, turnId: `t${n}`, input: "x".repeat(700) + n });
      await expect(run({ ...it.key, ...request })).rejects.toThrow("overloaded");
      return it;
    };
    const inFlight = [
      "seal",
      "findTurn",
      "turns",
      "openTurn",
      "saveInput",
      "checkpoint",
      "renew",
      "release",
    ];
    test.each(inFlight)(
      "answers when its %s has come back, and calls the store no more",
      async (method) => {
        const plan = steps(["pay"], ["put"]);
        const { die, reached } = death();
        const it = await restored({
          replies: [...times(6, steps()), plan, new Error("overloaded"), plan, die],
        });
        const way = gate();
        const watched = watchedStore(store, (called) =>
          called === method ? way.pass() : undefined,
        );
        let ended = false;
        const turn = it
          .runner(watched.store)
          .run({ ...it.key, ...request, deadlineMs: NOW_MS + 28_000 })
          .finally(() => {
            ended = true;
          });
        turn.catch(() => {});
        if (method === "renew") {
          await reached;
          it.clock.advance(15_000);
        }
        if (method !== "release") await way.arrived;
        else await reached;
        it.clock.advance(22_000);
        await way.arrived;
        await quiet();
        expect(ended).toBe(false);
        way.open();
        await expect(turn).rejects.toThrow(TurnTimeoutError);
        expect(watched.open()).toBe(0);
        const before = watched.calls.length;
        it.clock.advance(LEASE_OVER_MS);
        await quiet();
        expect(watched.calls).toHaveLength(before);
        expect(await it.head()).toMatchObject({ version: 7, open: { turnId: "k" } });
        expect(await it.head()).not.toHaveProperty("claim");
      },
    );

    test("sends no heartbeat any more that waits behind a checkpoint", async () => {
      const way = gate();
      const watched = watchedStore(store, (method) =>
        method === "checkpoint" ? way.pass() : undefined,
      );
      const it = scene(watched.store, { replies: [steps(["pay"])] });
      const turn = it.runner().run({ ...it.key, ...request, deadlineMs: NOW_MS + 28_000 });
      turn.catch(() => {});
      await way.arrived;
      it.clock.advance(15_000);
      await quiet();
      it.clock.advance(7000);
      way.open();
      await expect(turn).rejects.toThrow(TurnTimeoutError);
      expect(watched.calls).not.toContain("renew");
    });

    test("as it can't be restored answers when all that it asked for has come back", async () => {
      const plan = steps(["pay"]);
      const it = await restored({ replies: [...times(6, steps()), plan, new Error("overloaded")] });
      const way = gate();
      const watched = watchedStore(store, (called) =>
        called === "turns" ? way.pass() : undefined,
      );
      let ended = false;
      const turn = it
        .runner({ ...watched.store, openTurn: async () => undefined })
        .run({ ...it.key, ...request })
        .finally(() => {
          ended = true;
        });
      turn.catch(() => {});
      await way.arrived;
      await quiet();
      expect(ended).toBe(false);
      way.open();
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(watched.open()).toBe(0);
    });

    test("and whose model answers after its end stores nothing", async () => {
      const late = gate();
      const watched = watchedStore(store);
      const it = scene(watched.store, {
        replies: [() => late.pass().then(() => assistantMessage("too late"))],
      });
      const turn = it.runner().run({ ...it.key, ...request, deadlineMs: NOW_MS + 28_000 });
      await late.arrived;
      it.clock.advance(22_000);
      await expect(turn).rejects.toThrow(TurnTimeoutError);
      const before = watched.calls.length;
      late.open();
      await quiet();
      expect(watched.calls).toHaveLength(before);
    });
  });
};
