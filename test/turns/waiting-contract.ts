/** What holds on every store of turns that wait for their place behind the running one. */
import { beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { systemClock } from "../../lib/turns/clock.ts";
import { SessionBusyError, TurnTimeoutError } from "../../lib/turns/errors.ts";
import { NOW_MS } from "../support/heads.ts";
import { busyScene, gate, quiet, scene, steps, times, watchedStore } from "./scene.ts";

export const waitingContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });

  describe(`waiting on ${name}`, () => {
    test("a turn gets its place behind the running one, and writes no more than that takes", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const watched = watchedStore(store);
      const leases: number[] = [];
      const waiting = it.runner({
        ...watched.store,
        claim: (write) => {
          leases.push(write.claim.untilMs - it.clock.nowMs());
          return watched.store.claim(write);
        },
      });
      const second = waiting.run({ ...it.key, turnId: "b", input: "and?", onBusy: "wait" });
      for (let looks = 0; looks < 5; looks++) {
        await expect.poll(() => it.clock.sleepers()).toBe(2);
        it.clock.advance(500);
      }
      it.finish();
      expect(await it.running).toMatchObject({ version: 2 });
      await expect.poll(() => it.clock.sleepers()).toBe(1);
      it.clock.advance(500);
      expect(await second).toMatchObject({ version: 3 });
      expect((await it.history()).map(({ turnId }) => turnId)).toEqual(["a", "b"]);
      expect(it.model.calls.at(-1)?.messages).toHaveLength(8);
      const reads = times(6, "read");
      const run = ["claim", "seal", "turns", "saveInput", "commit"];
      expect(watched.calls).toEqual(["claim", ...reads, ...run]);
      expect(leases).toEqual([32_000, 32_000]);
    });

    test("the very same turn gets the running one's result", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const waiting = it.runner({}, { clock: systemClock });
      const same = waiting.run({ ...it.key, turnId: "a", input: "long work", onBusy: "wait" });
      await quiet();
      it.finish();
      expect(await same).toEqual({ ...(await it.running), replayed: true });
      expect(it.ran.map((run) => run.name)).toEqual(["put", "read", "pay"]);
      expect(it.model.calls).toHaveLength(3);
    });

    test("the very same turn goes on where the running one failed", async () => {
      const way = gate();
      const plan = steps(["pay"]);
      const fail = () => way.pass().then(() => Promise.reject(new Error("overloaded")));
      const it = scene(store, { replies: [plan, fail, plan] });
      const same = { ...it.key, turnId: "a", input: "Hi" };
      const running = it.runner().run(same);
      running.catch(() => {});
      await way.arrived;
      const watched = watchedStore(store);
      const waiting = it.runner(watched.store).run({ ...same, onBusy: "wait" });
      await expect.poll(() => it.clock.sleepers()).toBe(2);
      way.open();
      await expect(running).rejects.toThrow("overloaded");
      await expect.poll(() => it.clock.sleepers()).toBe(1);
      it.clock.advance(50);
      expect(await waiting).toMatchObject({ final: "done", replayed: false });
      expect(it.ran).toHaveLength(1);
      // It needn't take over what nobody holds.
      expect(watched.calls.slice(0, 3)).toEqual(["claim", "read", "claim"]);
    });

    /** It waits, and its time ends: in a pause, or while it looks or claims. */
    const places = ["pause", "read", "claim"] as const;
    test.each(places)(
      "a turn whose time is over in its %s finds the session busy, and leaves nothing behind",
      async (place) => {
        const it = await busyScene(store);
        const before = await it.head();
        const way = gate();
        let isFree = false;
        const through: Partial<SessionStore> = {
          read: async (key) => {
            if (place === "read") await way.pass();
            const head = await store.read(key);
            if (place !== "claim" || !head) return head;
            isFree = true;
            const { claim: _claim, open: _open, ...free } = head;
            return free;
          },
          claim: async (claim) => {
            if (isFree) await way.pass();
            return store.claim(claim);
          },
        };
        const turn = it
          .runner(through)
          .run({ ...it.key, input: "and?", onBusy: "wait", deadlineMs: NOW_MS + 4000 });
        turn.catch(() => {});
        await expect.poll(() => it.clock.sleepers()).toBe(3);
        if (place !== "pause") {
          it.clock.advance(50);
          await way.arrived;
        }
        it.clock.advance(3000);
        way.open();
        await expect(turn).rejects.toThrow(SessionBusyError);
        await expect(turn).rejects.toMatchObject({ retryAfterSeconds: 5 });
        await expect(turn).rejects.not.toThrow(TurnTimeoutError);
        expect(it.clock.sleepers()).toBe(1);
        expect(await it.head()).toEqual(before);
        it.finish();
        await it.running;
      },
    );

    test("a turn that its caller aborts leaves nothing behind", async () => {
      const it = await busyScene(store);
      const before = await it.head();
      const caller = new AbortController();
      const watched = watchedStore(store);
      const turn = it
        .runner(watched.store)
        .run({ ...it.key, input: "and?", onBusy: "wait", signal: caller.signal });
      turn.catch(() => {});
      await expect.poll(() => it.clock.sleepers()).toBe(2);
      caller.abort(new Error("changed my mind"));
      await expect(turn).rejects.toThrow("changed my mind");
      expect(watched.calls).toEqual(["claim"]);
      expect(it.clock.sleepers()).toBe(1);
      expect(await it.head()).toEqual(before);
    });

    test("50 turns at once on one session: 50 in the history, 50 model calls, and few writes", async () => {
      const watched = watchedStore(store);
      const it = scene(watched.store, { replies: times(51, steps()) });
      const { run } = it.runner({}, { clock: systemClock });
      const inputs = Array.from({ length: 50 }, (_, n) => `turn-${n}`);
      const results = await Promise.all(
        inputs.map((input) => run({ ...it.key, turnId: input, input, onBusy: "wait" })),
      );
      expect(it.model.calls).toHaveLength(50);
      const versions = results.map(({ version }) => version).toSorted((a, b) => a - b);
      expect(versions).toEqual(inputs.map((_, n) => n + 2));
      const asked = (await it.history()).map(({ messages }) => messages[0]?.content);
      expect(new Set(asked)).toEqual(new Set(inputs));
      // Three are needed: the claim that finds the session busy, the one that gets it, and the commit.
      // The others lost to one that saw the session free at the same time: more, the slower the store is.
      const writes = watched.calls.filter((call) => ["claim", "create", "commit"].includes(call));
      expect(writes.length / 50).toBeLessThan(12);
    }, 120_000);
  });
};
