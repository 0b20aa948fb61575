/** What holds on every store of turns that are cancelled. */
import { beforeAll, describe, expect, test } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import {
  SessionNotFoundError,
  TurnNotFoundError,
  TurnSupersededError,
} from "../../lib/turns/errors.ts";
import { newKey } from "../support/heads.ts";
import { death, gate, LEASE_OVER_MS, scene, sentTwice, steps, times } from "./scene.ts";

export const cancelContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });
  const request = { turnId: "k", input: "Hi" };

  /** A scene with turn `k` at work: in its tool, or in its first model call. */
  const running = async (at: "tool" | "model" = "tool", turn: { turnId?: string } = request) => {
    const way = gate();
    const plan = steps(["pay"]);
    const it = scene(store, {
      replies: [
        async (messages) => {
          if (at === "model") await way.pass();
          return plan(messages);
        },
        ...times(40, steps()),
      ],
      does: () => way.pass().then(() => "paid"),
    });
    const runner = it.runner();
    const result = runner.run({ ...it.key, input: "Hi", ...turn });
    result.catch(() => {});
    await way.arrived;
    await expect.poll(() => it.clock.sleepers()).toBe(1);
    return { ...it, result, own: runner, finish: way.open };
  };

  describe(`cancelling on ${name}`, () => {
    test.each(["tool", "model"] as const)(
      "a turn in its %s: it is stopped, and never run again",
      async (at) => {
        const it = await running(at);
        await it.runner().cancel({ ...it.key, turnId: "k" });
        expect(await it.head()).not.toHaveProperty("open");
        // The session is free at once.
        expect(await it.runner().run({ ...it.key, input: "next" })).toMatchObject({ version: 2 });
        it.clock.advance(15_000);
        await expect(it.result).rejects.toThrow(TurnSupersededError);
        for (const input of ["next", "next"]) await it.runner().run({ ...it.key, input });
        await expect(it.runner().run({ ...it.key, ...request })).rejects.toThrow(/given up/);
        expect(it.ran).toHaveLength(at === "tool" ? 1 : 0);
        expect(await it.history()).toHaveLength(3);
      },
    );

    test("a turn of the same process stops it at once", async () => {
      const it = await running();
      await it.own.cancel({ ...it.key, turnId: "k" });
      await expect(it.result).rejects.toThrow(TurnSupersededError);
      expect(it.clock.sleepers()).toBe(0);
    });

    test("a turn that nobody runs any more: it is never run again", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: times(9, steps(["pay"])), does: die });
      void it.runner().run({ ...it.key, ...request });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const { run, cancel } = it.runner();
      await cancel({ ...it.key, turnId: "k" });
      await expect(run({ ...it.key, ...request })).rejects.toThrow(/given up/);
      expect(it.ran).toHaveLength(1);
      expect(await it.head()).not.toHaveProperty("open");
    });

    test("a turn, and that long ago: its next try is refused still", async () => {
      const it = await running("model");
      const { run, cancel } = it.own;
      await cancel({ ...it.key, turnId: "k" });
      for (let n = 0; n < 12; n++)
        await run({ ...it.key, turnId: `t${n}`, input: "x".repeat(900) + n });
      expect((await it.head()).recent.size).toBeLessThan(10);
      await expect(run({ ...it.key, ...request })).rejects.toThrow(/given up/);
      await cancel({ ...it.key, turnId: "k" });
      await cancel({ ...it.key, turnId: "t0" });
      expect(await run({ ...it.key, turnId: "t0", input: `${"x".repeat(900)}0` })).toMatchObject({
        replayed: true,
      });
    });

    test("a turn of long ago that is just delivered again leaves its result to it", async () => {
      const it = scene(store);
      const { run } = it.runner();
      const first = await run({ ...it.key, ...request });
      for (let n = 0; n < 8; n++) await run({ ...it.key, input: "x".repeat(900) + n });
      const before = await it.head();
      const way = gate();
      const again = it
        .runner({ findTurn: (place, key) => way.pass().then(() => store.findTurn(place, key)) })
        .run({ ...it.key, ...request });
      await way.arrived;
      expect((await it.head()).open?.turnId).toBe("k");
      await it.runner().cancel({ ...it.key, turnId: "k" });
      way.open();
      expect(await again).toEqual({ ...first, replayed: true });
      expect(await run({ ...it.key, ...request })).toEqual({ ...first, replayed: true });
      expect(await it.head()).toEqual({ ...before, fence: before.fence + 2 });
    });

    test("a turn of long ago by an id of our own changes nothing", async () => {
      const it = scene(store);
      const { run, cancel } = it.runner();
      const { turnId } = await run({ ...it.key, input: "Hi" });
      for (let n = 0; n < 8; n++) await run({ ...it.key, input: "x".repeat(900) + n });
      const before = await it.head();
      expect(before.tailFrom).toBeGreaterThan(2);
      await cancel({ ...it.key, turnId });
      await expect(cancel({ ...it.key, turnId: `${turnId}0` })).rejects.toThrow(TurnNotFoundError);
      expect(await it.head()).toEqual(before);
    });

    test("a turn that is done changes nothing", async () => {
      const it = scene(store);
      const { run, cancel } = it.runner();
      const done = await run({ ...it.key, ...request });
      const before = await it.head();
      await cancel({ ...it.key, turnId: "k" });
      await cancel({ ...it.key, turnId: "k" });
      expect(await it.head()).toEqual(before);
      expect(await run({ ...it.key, ...request })).toEqual({ ...done, replayed: true });
    });

    test("a turn twice is as once", async () => {
      const it = await running();
      await it.runner().cancel({ ...it.key, turnId: "k" });
      const before = await it.head();
      await it.runner().cancel({ ...it.key, turnId: "k" });
      expect(await it.head()).toEqual(before);
    });

    test("a turn without an id of its caller's, by the id that the session shows", async () => {
      const it = await running("tool", {});
      const turnId = (await it.head()).open?.turnId ?? "";
      expect(turnId).toMatch(/^~/);
      await it.runner().cancel({ ...it.key, turnId });
      expect(await it.head()).toMatchObject({ version: 1, recent: new Map() });
      it.clock.advance(15_000);
      await expect(it.result).rejects.toThrow(TurnSupersededError);
    });

    test("what isn't there is refused, and what is another's isn't there", async () => {
      const it = await running();
      const { cancel } = it.runner();
      const before = await it.head();
      await expect(cancel({ ...it.key, turnId: "nope" })).rejects.toThrow(TurnNotFoundError);
      await expect(cancel({ ...it.key, turnId: "" })).rejects.toThrow(InvalidInputError);
      await expect(cancel({ ...it.key, owner: "bob", turnId: "k" })).rejects.toThrow(
        SessionNotFoundError,
      );
      await expect(cancel({ ...newKey(), turnId: "k" })).rejects.toThrow(SessionNotFoundError);
      it.clock.advance(31 * 86_400_000, { wake: false });
      await expect(cancel({ ...it.key, turnId: "k" })).rejects.toThrow(SessionNotFoundError);
      expect(await it.head()).toEqual(before);
    });

    test("a turn as it commits: one of the two comes first, and holds", async () => {
      for (const first of ["commit", "cancel"] as const) {
        const [committing, cancelling] = [gate(), gate()];
        const it = scene(store);
        const runner = it.runner({
          commit: (write) => committing.pass().then(() => store.commit(write)),
        });
        const result = runner.run({ ...it.key, ...request });
        result.catch(() => {});
        await committing.arrived;
        const { cancel } = it.runner({
          displace: (write) => cancelling.pass().then(() => store.displace(write)),
        });
        const cancelled = cancel({ ...it.key, turnId: "k" });
        await cancelling.arrived;
        if (first === "commit") {
          committing.open();
          expect(await result).toMatchObject({ final: "done", version: 2, replayed: false });
          cancelling.open();
          await cancelled;
          expect(await it.history()).toHaveLength(1);
        } else {
          cancelling.open();
          await cancelled;
          committing.open();
          await expect(result).rejects.toThrow(TurnSupersededError);
          expect(await it.history()).toEqual([]);
        }
      }
    });

    test("a turn that has just stored a step, all the same", async () => {
      const way = gate();
      const { die, reached } = death();
      const it = scene(store, {
        replies: [steps(["pay"]), die],
        does: () => way.pass().then(() => "paid"),
      });
      void it.runner().run({ ...it.key, ...request });
      await way.arrived;
      let looks = 0;
      const { cancel } = it.runner({
        read: async (key) => {
          const seen = await store.read(key);
          // What was seen is no longer so when it is to be displaced.
          if (looks++ === 0) {
            way.open();
            await reached;
            await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
          }
          return seen;
        },
      });
      await cancel({ ...it.key, turnId: "k" });
      expect(looks).toBe(2);
      expect(await it.head()).not.toHaveProperty("open");
    });

    test.each([request, {}])(
      "a turn by a request that is sent twice is no failure",
      async (turn) => {
        const it = await running("tool", turn);
        const { cancel } = it.runner({ displace: sentTwice(store.displace) });
        await cancel({ ...it.key, turnId: (await it.head()).open?.turnId ?? "" });
        expect(await it.head()).not.toHaveProperty("claim");
      },
    );
  });
};
