/** What holds on every store of turns that are refused: they are told why, and cost nobody else a turn. */
import { beforeAll, describe, expect, test } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { systemClock } from "../../lib/turns/clock.ts";
import { SessionNotFoundError, TurnIdReusedError } from "../../lib/turns/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { busyScene, death, LEASE_OVER_MS, scene, steps, times, watchedStore } from "./scene.ts";

export const refusalsContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`a turn that is refused, on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    test.each(["interrupt", "rollback"] as const)(
      "since there is none that it could supersede leaves the running one alone, also with %s",
      async (onBusy) => {
        const it = await busyScene(store, { turnId: "a" });
        const { run } = it.runner();
        for (const supersedes of ["nope", "a"]) {
          const wrong = run({ ...it.key, input: "better", onBusy, supersedes });
          await expect(wrong).rejects.toThrow(InvalidInputError);
        }
        it.finish();
        expect(await it.running).toMatchObject({ final: "done", version: 2 });
      },
    );

    test("since there is none that it could supersede leaves one alone that nobody runs", async () => {
      const { die, reached } = death();
      const it = scene(store, { replies: [steps(["pay"]), die, steps()] });
      void it.runner().run({ ...it.key, turnId: "a", input: "Hi" });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const { run } = it.runner();
      const wrong = run({ ...it.key, input: "better", supersedes: "nope" });
      await expect(wrong).rejects.toThrow("supersedes: there is no turn nope in this session");
      expect(await run({ ...it.key, turnId: "a", input: "Hi" })).toMatchObject({ version: 2 });
      expect(it.ran).toHaveLength(1);
    });

    test.each(["reject", "wait", "interrupt", "rollback"] as const)(
      "since its id is at work with another input is told so at once, with %s",
      async (onBusy) => {
        const it = await busyScene(store, { turnId: "a" });
        const other = it.runner().run({ ...it.key, turnId: "a", input: "other", onBusy });
        await expect(other).rejects.toThrow(TurnIdReusedError);
        it.finish();
        expect(await it.running).toMatchObject({ final: "done" });
      },
    );

    const old = async () => {
      const it = scene(store, { replies: times(40, steps()) });
      const input = "word ".repeat(200);
      for (let n = 0; n < 6; n++) {
        await it.runner().run({ ...it.key, turnId: `t${n}`, input: `${n} ${input}` });
      }
      expect((await it.head()).tailFrom).toBeGreaterThan(2);
      return { ...it, request: { ...it.key, turnId: "t0", input: `0 ${input}` } };
    };

    test.each(["reject", "wait"] as const)(
      "isn't one that was done long ago: it gets its result while another runs, with %s",
      async (onBusy) => {
        const it = await old();
        const { die, reached } = death();
        const busy = scene(store, { replies: [die] });
        void busy.runner().run({ ...it.key, turnId: "busy", input: "long work" });
        await reached;
        const { run } = it.runner();
        const again = await run({ ...it.request, onBusy });
        expect(again).toMatchObject({ version: 2, replayed: true });
        const other = run({ ...it.request, input: "other", onBusy });
        await expect(other).rejects.toThrow(TurnIdReusedError);
        expect((await it.head()).open?.turnId).toBe("busy");
      },
    );

    test("isn't one that was done long ago, though its id is tried with another input just now", async () => {
      const it = await old();
      let again: unknown;
      const findTurn: SessionStore["findTurn"] = async (place, key) => {
        // The wrong try has the session.
        again ??= await it.runner().run(it.request);
        return store.findTurn(place, key);
      };
      const wrong = it.runner({ findTurn }).run({ ...it.request, input: "other" });
      await expect(wrong).rejects.toThrow(TurnIdReusedError);
      expect(again).toMatchObject({ version: 2, replayed: true });
    });

    test.each(["interrupt", "rollback"] as const)(
      "since its session is deleted before it gets it begins no new one, with %s",
      async (onBusy) => {
        const it = await busyScene(store, { turnId: "a" });
        const sessions = createSessions({ store, clock: it.clock });
        const takeOver: SessionStore["takeOver"] = async (write) => {
          await sessions.delete(it.key);
          return store.takeOver(write);
        };
        const next = it.runner({ takeOver }).run({ ...it.key, input: "stop", onBusy });
        await expect(next).rejects.toThrow(SessionNotFoundError);
        await expect(sessions.read(it.key)).rejects.toThrow(SessionNotFoundError);
        it.finish();
        await expect(it.running).rejects.toThrow(SessionNotFoundError);
      },
    );

    test.each(["interrupt", "wait"] as const)(
      "since its session was created anew meanwhile leaves the new one alone, with %s",
      async (onBusy) => {
        const it = await busyScene(store, { turnId: "a" });
        const sessions = createSessions({ store, clock: it.clock });
        const recreate = async (): Promise<void> => {
          await sessions.delete(it.key);
          await sessions.create(it.key);
        };
        const through: Partial<SessionStore> = {
          read: (key) => recreate().then(() => store.read(key)),
          takeOver: (write) => recreate().then(() => store.takeOver(write)),
        };
        const { run } = it.runner(through, { clock: systemClock });
        const next = run({ ...it.key, turnId: "b", input: "and?", onBusy });
        await expect(next).rejects.toThrow(SessionNotFoundError);
        expect(await sessions.read(it.key)).toMatchObject({ version: 1, counts: { turns: 0 } });
      },
    );

    test("since its session was created anew when it was to get it leaves the new one alone", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const sessions = createSessions({ store, clock: it.clock });
      let claims = 0;
      const through: Partial<SessionStore> = {
        read: async (key) => {
          it.finish();
          await it.running;
          return store.read(key);
        },
        claim: async (write) => {
          if (claims++ > 0) {
            await sessions.delete(it.key);
            await sessions.create(it.key);
          }
          return store.claim(write);
        },
      };
      const { run } = it.runner(through, { clock: systemClock });
      const next = run({ ...it.key, turnId: "b", input: "and?", onBusy: "wait" });
      await expect(next).rejects.toThrow(SessionNotFoundError);
      expect(claims).toBe(2);
      expect(await sessions.read(it.key)).toMatchObject({ version: 1, counts: { turns: 0 } });
    });

    test("since its session is deleted while it waits begins no new one, nor does the very same turn", async () => {
      const it = await busyScene(store, { turnId: "a" });
      const sessions = createSessions({ store, clock: it.clock });
      const watched = watchedStore(store);
      const { run } = it.runner(watched.store, { clock: systemClock });
      const waiting = ["a", "b"].map((turnId) =>
        run({ ...it.key, turnId, input: "long work", onBusy: "wait" }),
      );
      const outcomes = Promise.allSettled(waiting);
      const reads = () => watched.calls.filter((call) => call === "read").length;
      await expect.poll(reads).toBeGreaterThan(3);
      await sessions.delete(it.key);
      for (const outcome of await outcomes) {
        expect(outcome).toMatchObject({ reason: expect.any(SessionNotFoundError) });
      }
      expect(it.ran.map((run) => run.name)).toEqual(["put", "read", "pay"]);
      it.finish();
      await expect(it.running).rejects.toThrow(SessionNotFoundError);
      await expect(sessions.read(it.key)).rejects.toThrow(SessionNotFoundError);
    });

    test("or deleted with its session leaves its fence to the next session of that name", async () => {
      const it = scene(store, { replies: times(4, steps()) });
      const sessions = createSessions({ store, clock: it.clock });
      const { run } = it.runner();
      for (let n = 0; n < 2; n++) await run({ ...it.key, input: "Hi" });
      await sessions.delete(it.key);
      await run({ ...it.key, input: "Hi" });
      expect((await it.head()).fence).toBe(3);
      await sessions.delete(it.key);
      expect((await sessions.create(it.key)).fence).toBe(3);
      await run({ ...it.key, input: "Hi" });
      expect((await it.head()).fence).toBe(4);
    });
  });
};
