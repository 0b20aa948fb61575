/** What holds on every store of turns that have to end, at their deadline or earlier. */
import { beforeAll, describe, expect, test } from "vitest";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { TurnInProgressError, TurnTimeoutError } from "../../lib/turns/errors.ts";
import { NOW_MS } from "../support/heads.ts";
import {
  contents,
  death,
  gate,
  LEASE_OVER_MS,
  quiet,
  REQUEST,
  scene,
  steps,
  times,
  watchedStore,
} from "./scene.ts";

export const endingContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
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
        const turn = run({ ...it.key, ...REQUEST, ...time });
        await reached;
        await quiet();
        if (isTimeout) it.clock.advance(22_000);
        else caller.abort(error);
        await expect(turn).rejects.toThrow(error);
        expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
        expect(await it.head()).not.toHaveProperty("claim");
        expect(await it.open()).toMatchObject({ steps: [{ results: ["put done", null] }] });
        expect(await it.history()).toEqual([]);

        await run({ ...it.key, ...REQUEST });
        expect(contents(await it.messages())).toEqual([
          "Hi",
          "",
          "put done",
          OUTCOME_UNKNOWN,
          "done",
        ]);
        expect(it.ran).toHaveLength(2);
      },
    );

    test("whose commit is on its way is done", async () => {
      const way = gate();
      const it = scene(store);
      const through: Partial<SessionStore> = {
        commit: (write) => way.pass().then(() => store.commit(write)),
      };
      const turn = it.runner(through).run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 28_000 });
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
        const turn = it.runner(through).run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 28_000 });
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
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow("overloaded");
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
          .run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 28_000 })
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
      const turn = it.runner().run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 28_000 });
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
        .run({ ...it.key, ...REQUEST })
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
      const turn = it.runner().run({ ...it.key, ...REQUEST, deadlineMs: NOW_MS + 28_000 });
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
