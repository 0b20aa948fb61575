/** What holds on every store of turns that nobody goes on with. */
import { beforeAll, describe, expect, test } from "vitest";
import { ModelFailedError } from "../../lib/agent/agent.ts";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { userMessage } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { TurnIdReusedError, TurnSupersededError } from "../../lib/turns/errors.ts";
import { randomText } from "../support/heads.ts";
import {
  contents,
  death,
  LEASE_OVER_MS,
  REQUEST,
  scene,
  sentTwice,
  steps,
  times,
  watchedStore,
} from "./scene.ts";

export const abandonedContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });

  describe(`a turn that nobody goes on with, on ${name}`, () => {
    /** A scene with turn `k` left behind, as its runner died in a tool or in the model call before. */
    const abandonedScene = async (at: "tool" | "model") => {
      const { die, reached } = death();
      const it = scene(store, {
        replies: [at === "model" ? die : steps(["pay"]), ...times(60, steps())],
        does: die,
      });
      void it.runner().run({ ...it.key, ...REQUEST });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      return it;
    };

    test("shows as the session's open one, and the next turn leaves it out of the history", async () => {
      const it = await abandonedScene("tool");
      expect(await it.head()).toMatchObject({
        version: 1,
        open: { turnId: "k", input: "Hi", steps: 1 },
      });
      await it.runner().run({ ...it.key, turnId: "next", input: "Hello?" });
      expect(it.model.calls.at(-1)?.messages).toEqual([userMessage("Hello?")]);
      expect(contents(await it.messages())).toEqual(["Hello?", "done"]);
      expect(await it.head()).not.toHaveProperty("open");
    });

    test("is never run again, also long after", async () => {
      const it = await abandonedScene("tool");
      const { run } = it.runner();
      const late = () => run({ ...it.key, ...REQUEST });
      await run({ ...it.key, input: "Hello?" });
      await expect(late()).rejects.toThrow(/given up/);
      await expect(run({ ...it.key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      for (let n = 0; n < 30; n++)
        await run({ ...it.key, turnId: `t${n}`, input: randomText(300) });
      const before = await it.head();
      expect(before.recent.size).toBeLessThan(20);
      const asked = it.model.calls.length;
      await expect(late()).rejects.toThrow(TurnSupersededError);
      await expect(run({ ...it.key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      const twice = it.runner({ claim: sentTwice(store.claim) });
      await expect(twice.run({ ...it.key, ...REQUEST })).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toHaveLength(1);
      expect(it.model.calls.length - asked).toBeLessThanOrEqual(3);
      expect(await it.head()).toEqual({ ...before, fence: before.fence + 3 });
    });

    test("gives its place to the next turn also where it was released", async () => {
      const it = scene(store, { replies: [steps(["pay"]), new Error("overloaded"), steps()] });
      const { run } = it.runner();
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow(ModelFailedError);
      expect(await it.head()).not.toHaveProperty("claim");
      expect(await run({ ...it.key, input: "Hello?" })).toMatchObject({ version: 2 });
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow(/given up/);
    });

    test("runs afresh if it had done nothing", async () => {
      const it = await abandonedScene("model");
      const { run } = it.runner();
      await run({ ...it.key, input: "Hello?" });
      expect(await run({ ...it.key, ...REQUEST })).toMatchObject({ version: 3, replayed: false });
      expect(contents(await it.messages())).toEqual(["Hello?", "done", "Hi", "done"]);
    });

    test("stays where it is when a turn of long ago is delivered again", async () => {
      const { die, reached } = death();
      const plan = steps(["pay"]);
      const it = scene(store, { replies: [...times(20, steps()), ...times(3, plan)], does: die });
      const { run } = it.runner();
      const first = await run({ ...it.key, turnId: "old", input: "Hi" });
      for (let n = 1; n < 20; n++)
        await run({ ...it.key, turnId: `t${n}`, input: randomText(300) });
      expect((await it.head()).recent.size).toBeLessThan(12);
      void it.runner().run({ ...it.key, ...REQUEST });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const before = await it.head();

      const old = { ...it.key, turnId: "old" };
      expect(await run({ ...old, input: "Hi" })).toEqual({ ...first, replayed: true });
      await expect(run({ ...old, input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      expect(await it.head()).toEqual(before);
      const watched = watchedStore(store);
      await it.runner(watched.store).run({ ...it.key, ...REQUEST });
      // Whoever takes over has looked already.
      expect(watched.calls.filter((call) => call === "findTurn")).toHaveLength(1);
      expect(contents(await it.messages()).slice(-4)).toEqual(["Hi", "", OUTCOME_UNKNOWN, "done"]);
      expect(it.ran).toHaveLength(1);
    });

    test("is taken over meanwhile by the very turn whose record is looked for: it gets that result", async () => {
      const { die, reached } = death();
      const replies = [...times(20, steps()), steps(["pay"]), ...times(30, steps())];
      const it = scene(store, { replies, does: die });
      const { run } = it.runner();
      for (let n = 0; n < 20; n++)
        await run({ ...it.key, turnId: `t${n}`, input: randomText(300) });
      void it.runner().run({ ...it.key, ...REQUEST });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });

      const late = { ...it.key, turnId: "late", input: "Hello?" };
      const looking = it.runner({
        findTurn: async (place, turnKey) => {
          if ((await it.history()).length === 20) {
            await run(late);
            for (let n = 20; n < 40; n++)
              await run({ ...it.key, turnId: `t${n}`, input: randomText(300) });
          }
          return store.findTurn(place, turnKey);
        },
      });
      expect(await looking.run(late)).toMatchObject({ final: "done", version: 22, replayed: true });
    });
  });
};
