/** What holds on every store of a runner's claim on its session, and of how it ends. */
import { beforeAll, describe, expect, test } from "vitest";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { SessionBusyError, TurnSupersededError, TurnTimeoutError } from "../../lib/turns/errors.ts";
import { claimOn, head, NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedTurns } from "./scripted.ts";

export const claimContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`turns on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });
    const { start, script, historyOf } = scriptedTurns(() => store);

    test("a dead runner's claim is taken over when its lease has ended, and not before", async () => {
      const { run, clock } = script(assistantMessage("hello"));
      const it = head({ createdAt: "2100-12-01T11:00:00.000000+00:00" });
      const key = { owner: it.owner, sessionId: it.sessionId };
      await store.create({ head: it, nowMs: NOW_MS });
      await store.claim(claimOn(key, { open: openTurn({ turnId: "dead" }) }));
      await expect(run({ ...key, input: "Hi" })).rejects.toThrow(SessionBusyError);
      clock.advance(30_000);
      expect(await run({ ...key, input: "Hi" })).toMatchObject({ final: "hello", version: 2 });
      expect((await historyOf(key)).map(({ content }) => content)).toEqual([
        "Be kind.",
        "Hi",
        "hello",
      ]);
    });

    test("a runner that wakes up after its lease can't commit over its successor", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, clock } = script(() => gate.promise, assistantMessage("successor"));
      const key = newKey();
      const paused = run({ ...key, input: "slow" });
      await expect.poll(() => model.calls.length).toBe(1);
      clock.advance(33_000, { wake: false });
      await start(model, { clock }).run({ ...key, input: "quick" });
      const after = await store.read(key);
      gate.resolve(assistantMessage("too late"));
      await expect(paused).rejects.toThrow(TurnSupersededError);
      expect(await store.read(key)).toEqual(after);
    });

    test("a runner whose turn another one did meanwhile gives that one's answer", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, clock } = script(() => gate.promise, assistantMessage("the answer"));
      const key = newKey();
      const paused = run({ ...key, turnId: "k", input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      clock.advance(33_000, { wake: false });
      const done = await start(model, { clock }).run({ ...key, turnId: "k", input: "Hi" });
      gate.resolve(assistantMessage("another answer"));
      expect(await paused).toEqual({ ...done, replayed: true });
      expect((await historyOf(key)).map(({ content }) => content)).toEqual([
        "Be kind.",
        "Hi",
        "the answer",
      ]);
    });

    test("a turn longer than its lease keeps the session by extending it", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, clock } = script(() => gate.promise);
      const key = newKey();
      const running = run({ ...key, input: "slow" });
      await expect.poll(() => model.calls.length).toBe(1);
      for (let n = 0; n < 5; n++) {
        await expect.poll(() => clock.sleepers()).toBe(1);
        clock.advance(15_000);
        await expect
          .poll(async () => (await store.read(key))?.claim?.untilMs)
          .toBe(clock.nowMs() + 32_000);
        await expect(run({ ...key, input: "other" })).rejects.toThrow(SessionBusyError);
      }
      gate.resolve(assistantMessage("done"));
      expect(await running).toMatchObject({ final: "done" });
      expect(clock.sleepers()).toBe(0);
    });

    test("a runner that learns that it lost the session stops at once", async () => {
      const { run, model, clock } = script(
        (_messages, _tools, { signal }) =>
          new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
        assistantMessage("successor"),
      );
      const key = newKey();
      const paused = run({ ...key, input: "slow" });
      await expect.poll(() => model.calls.length).toBe(1);
      clock.advance(33_000, { wake: false });
      await start(model, { clock }).run({ ...key, input: "quick" });
      clock.wake();
      await expect(paused).rejects.toThrow(TurnSupersededError);
    });

    test("a turn stops before its caller's deadline and frees the session", async () => {
      let aborted = false;
      const { run, clock, model } = script((_messages, _tools, { signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        return new Promise(() => {});
      }, assistantMessage("hello"));
      const key = newKey();
      const running = run({ ...key, turnId: "k", input: "Hi", deadlineMs: NOW_MS + 28_000 });
      await expect.poll(() => model.calls.length).toBe(1);
      expect((await store.read(key))?.claim?.untilMs).toBe(NOW_MS + 30_000);
      await expect.poll(() => clock.sleepers()).toBe(2);
      clock.advance(22_000);
      await expect(running).rejects.toThrow(TurnTimeoutError);
      expect(aborted).toBe(true);
      expect(await store.read(key)).toMatchObject({ version: 1, tail: [], counts: { turns: 0 } });
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toMatchObject({
        final: "hello",
        version: 2,
      });
    });

    test("a turn that its caller aborts frees the session", async () => {
      const caller = new AbortController();
      const { run } = script(() => {
        caller.abort(new Error("changed my mind"));
        return new Promise<Message>(() => {});
      }, assistantMessage("hello"));
      const key = newKey();
      await expect(run({ ...key, input: "Hi", signal: caller.signal })).rejects.toThrow(
        "changed my mind",
      );
      expect(await run({ ...key, input: "Hi" })).toMatchObject({ final: "hello" });
    });
  });
};
