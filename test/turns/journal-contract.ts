/** What holds on every store of what a turn keeps of itself, and when. */
import { beforeAll, describe, expect, test } from "vitest";
import { DamagedSessionError } from "../../lib/store/errors.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { SessionNotFoundError } from "../../lib/turns/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import {
  calls,
  death,
  gate,
  LEASE_OVER_MS,
  quiet,
  scene,
  steps,
  times,
  watchedStore,
} from "./scene.ts";

export const journalContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`a turn's journal on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    test("keeps no step, and lets no tool start, before the turn is known to be a new one", async () => {
      const it = scene(store, { replies: [...times(6, steps()), ...times(2, steps(["pay"]))] });
      // Older turns have left HEAD, and their records with them.
      const input = "word ".repeat(200);
      for (let n = 0; n < 6; n++) await it.runner().run({ ...it.key, input });
      const way = gate();
      const watched = watchedStore(store, (method) =>
        method === "findTurn" ? way.pass() : undefined,
      );
      const running = it.runner(watched.store).run({ ...it.key, turnId: "a", input: "pay" });
      await way.arrived;
      await expect.poll(() => it.model.calls.length).toBe(7);
      await quiet();
      expect([watched.calls.includes("checkpoint"), it.ran.length]).toEqual([false, 0]);
      way.open();
      expect(await running).toMatchObject({ version: 8 });
      expect(it.ran).toHaveLength(1);
    });

    test("writes nothing again that an earlier try has kept", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: [steps(["pay", "put"]), die, steps()] });
      void it.runner().run({ ...it.key, turnId: "a", input: "pay" });
      await reached;
      await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const watched = watchedStore(store);
      const again = it.runner(watched.store).run({ ...it.key, turnId: "a", input: "pay" });
      expect(await again).toMatchObject({ version: 2, replayed: false });
      expect(watched.calls).not.toContain("checkpoint");
      expect(it.ran).toHaveLength(2);
    });

    test("keeps what the model's provider wants back, through a resume and in the history", async () => {
      const providerData = { provider: "x:1", data: { signature: "s" } };
      const asks = { ...calls("pay"), providerData };
      const { die, reached } = death();
      const it = scene(store, { provider: "x:1", replies: [asks, die, steps(), steps()] });
      void it.runner().run({ ...it.key, turnId: "a", input: "pay" });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      await it.runner().run({ ...it.key, turnId: "a", input: "pay" });
      await it.runner().run({ ...it.key, input: "and?" });
      expect(it.model.calls).toHaveLength(4);
      for (const { messages } of it.model.calls.slice(1)) {
        expect(messages[1]).toMatchObject({ role: "assistant", providerData });
      }
      expect((await it.messages())[1]).toMatchObject({ providerData });
    });

    test("keeps a result while the tool beside it still runs, and the next try doesn't run it again", async () => {
      const { die, reached } = death();
      const replies = times(2, steps(["pay", "put", "read"]));
      let lives = 0;
      const it = scene(store, {
        replies,
        does: (name) => (name === "put" && lives === 0 ? die() : `${name} done`),
      });
      void it.runner().run({ ...it.key, turnId: "a", input: "go" });
      await reached;
      await expect.poll(() => it.clock.sleepers()).toBe(2);
      it.clock.advance(1000);
      await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
      expect((await it.open())?.steps[0]?.results).toEqual(["pay done", null, null]);

      lives++;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const done = await it.runner().run({ ...it.key, turnId: "a", input: "go" });
      expect(done.messages.filter(({ role }) => role === "tool")).toMatchObject([
        { content: "pay done" },
        { content: "put done" },
        { content: "read done" },
      ]);
      expect(it.ran.map(({ name: tool }) => tool)).toEqual([
        ...["pay", "put", "read"],
        ...["put", "read"],
      ]);
      const [first, again] = it.ran.filter(({ name: tool }) => tool === "put");
      expect(again?.key).toBe(first?.key);
    });

    test("stores the results of tools that end together in one write", async () => {
      const watched = watchedStore(store);
      const it = scene(store, { replies: [steps(["pay", "put"]), steps()] });
      await it.runner(watched.store).run({ ...it.key, turnId: "a", input: "go" });
      await quiet();
      expect(watched.calls.filter((call) => call === "checkpoint")).toHaveLength(2);
      expect(it.clock.sleepers()).toBe(0);
    });

    test("writes nothing behind its turn's end, also where that comes between two tools", async () => {
      const { die, reached } = death();
      const it = scene(store, {
        replies: [steps(["pay", "put"])],
        does: (name) => (name === "put" ? die() : `${name} done`),
      });
      const watched = watchedStore(store);
      const caller = new AbortController();
      const { signal } = caller;
      const running = it.runner(watched.store).run({ ...it.key, turnId: "a", input: "go", signal });
      await reached;
      await expect.poll(() => it.clock.sleepers()).toBe(2);
      caller.abort(new Error("enough"));
      await expect(running).rejects.toThrow("enough");
      expect((await it.open())?.steps[0]?.results).toEqual(["pay done", null]);
      const { length } = watched.calls;
      it.clock.advance(60_000);
      await quiet();
      expect(watched.calls).toHaveLength(length);
      expect(it.clock.sleepers()).toBe(0);
    });

    test("leaves whole results whole, however late the first ones would have been written", async () => {
      const { die, reached } = death();
      const it = scene(store, {
        replies: [steps(["pay", "put"]), die],
        does: async (name) => {
          if (name === "put") await quiet();
          return `${name} done`;
        },
      });
      void it.runner().run({ ...it.key, turnId: "a", input: "go" });
      await reached;
      await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
      it.clock.advance(1000);
      await quiet();
      expect((await it.open())?.steps[0]?.results).toEqual(["pay done", "put done"]);
      expect((await it.head()).open?.revision).toBe(2);
    });

    test("that goes with its session, deleted as it is read, is no damage", async () => {
      const sessions = createSessions({ store });
      const goes: SessionStore["openTurn"] = async (head) => {
        await sessions.delete(head);
        throw new DamagedSessionError("a step is missing");
      };
      for (const request of [
        { turnId: "a", input: "pay", afterMs: LEASE_OVER_MS },
        { input: "stop that", onBusy: "interrupt" as const, afterMs: 0 },
      ]) {
        const { afterMs, ...sent } = request;
        const { die, reached } = death();
        const it = scene(store, { replies: [steps(["pay"]), die, steps()] });
        void it.runner().run({ ...it.key, turnId: "a", input: "pay" });
        await reached;
        it.clock.advance(afterMs, { wake: false });
        const next = it.runner({ openTurn: goes }).run({ ...it.key, ...sent });
        await expect(next).rejects.toThrow(SessionNotFoundError);
      }
    });

    test("becomes history without another prompt where the turn isn't the session's first", async () => {
      const { die, reached } = death();
      const replies = [steps(), steps(["put"]), die, steps()];
      const it = scene(store, { system: "Be kind.", replies });
      await it.runner().run({ ...it.key, input: "Hi" });
      void it.runner().run({ ...it.key, turnId: "a", input: "long work" });
      await reached;
      await it.runner().run({ ...it.key, input: "stop that", onBusy: "interrupt" });
      expect((await it.messages()).map(({ content }) => content)).toEqual([
        ...["Be kind.", "Hi", "done"],
        ...["long work", "", "put done", "(interrupted)"],
        ...["stop that", "done"],
      ]);
    });
  });
};
