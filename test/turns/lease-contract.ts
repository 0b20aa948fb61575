/** What holds on every store of runners that are paused past their lease. */
import { beforeAll, describe, expect, test } from "vitest";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import type { Renew, SessionStore } from "../../lib/store/store.ts";
import { TurnInProgressError, TurnSupersededError } from "../../lib/turns/errors.ts";
import { NOW_MS } from "../support/heads.ts";
import {
  calls,
  contents,
  death,
  gate,
  LEASE_OVER_MS,
  REQUEST,
  type Scene,
  scene,
  sentTwice,
  steps,
  times,
} from "./scene.ts";

export const leaseContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });

  describe(`a paused runner on ${name}`, () => {
    test("that wakes after another took over stores nothing, and starts no tool", async () => {
      const paused = gate();
      const it = scene(store, {
        replies: [() => paused.pass().then(() => calls("put", "pay")), steps()],
      });
      const turn = it.runner().run({ ...it.key, ...REQUEST });
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
      const turn = it.runner().run({ ...it.key, ...REQUEST });
      turn.catch(() => {});
      await paused.arrived;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const again = it.runner().run({ ...it.key, ...REQUEST });
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
        const turn = it.runner({ renew }).run({ ...it.key, ...REQUEST });
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
      const turn = it.runner(pausedAfter(it, 30_000)).run({ ...it.key, ...REQUEST });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
      expect(await it.head()).not.toHaveProperty("claim");
      await it.runner().run({ ...it.key, ...REQUEST });
      expect(contents(await it.messages())).toEqual([
        "Hi",
        "",
        "put done",
        OUTCOME_UNKNOWN,
        "done",
      ]);
    });

    test("leaves its turn open, to be gone on with, also where it had kept nothing", async () => {
      const it = scene(store, {
        replies: times(3, (messages) => {
          if (it.model.calls.length === 1) it.clock.advance(30_000, { wake: false });
          return steps(["read"])(messages);
        }),
      });
      const turn = it.runner().run({ ...it.key, ...REQUEST });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
      const left = await it.head();
      expect(left.open).toMatchObject({ turnId: "k", steps: 0 });
      expect(left).not.toHaveProperty("claim");
      expect(await it.runner().run({ ...it.key, ...REQUEST })).toMatchObject({ final: "done" });
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
      const turn = it.runner(through).run({ ...it.key, ...REQUEST });
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
      await it.runner(pausedAfter(it, 29_999)).run({ ...it.key, ...REQUEST });
      expect(it.ran).toHaveLength(1);
    });

    test("starts no tool where another try of its turn has kept as many steps", async () => {
      const [paused, tool] = [gate(), gate()];
      const plan = steps(["pay"]);
      const it = scene(store, {
        replies: [() => paused.pass().then(() => calls("pay")), plan, plan],
        does: () => tool.pass().then(() => "paid"),
      });
      const turn = it.runner().run({ ...it.key, ...REQUEST });
      turn.catch(() => {});
      await paused.arrived;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const again = it.runner().run({ ...it.key, ...REQUEST });
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
      const turn = runner.run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 10_000 });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toEqual([]);
    });

    test("starts no tool again whose lease ended while the turn was restored", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: times(2, steps(["put"])), does: die });
      void it.runner().run({ ...it.key, ...REQUEST });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const through: Partial<SessionStore> = {
        openTurn: async (head) => {
          it.clock.advance(LEASE_OVER_MS, { wake: false });
          return store.openTurn(head);
        },
      };
      const turn = it.runner(through).run({ ...it.key, ...REQUEST });
      await expect(turn).rejects.toThrow(TurnInProgressError);
      expect(it.ran).toHaveLength(1);
    });
  });
};
