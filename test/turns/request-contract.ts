/** What holds on every store of a turn's request: its id, its input and its version. */
import { beforeAll, describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import {
  SessionBusyError,
  TurnIdReusedError,
  TurnInProgressError,
  VersionMismatchError,
} from "../../lib/turns/errors.ts";
import { requestHash } from "../../lib/turns/request.ts";
import { claimOn, head, NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { scriptedTurns } from "./scripted.ts";

export const requestContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`turns on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });
    const { start, script, historyOf } = scriptedTurns(() => store);

    test("a turn is refused before its model call while another runs", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model } = script(() => gate.promise);
      const key = newKey();
      const running = run({ ...key, turnId: "one", input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      await expect(run({ ...key, turnId: "two", input: "Hi" })).rejects.toThrow(SessionBusyError);
      const twice = run({ ...key, turnId: "one", input: "Hi" });
      await expect(twice).rejects.toThrow(TurnInProgressError);
      await expect(twice).rejects.toMatchObject({ retryAfterSeconds: 5 });
      gate.resolve(assistantMessage("Hello."));
      expect(await running).toMatchObject({ final: "Hello." });
      expect(model.calls).toHaveLength(1);
    });

    test("a known turn id gets the stored result and no model call, also when later turns came", async () => {
      const { run, model } = script(assistantMessage("one"), assistantMessage("two"));
      const key = newKey();
      const first = await run({ ...key, turnId: "k", input: "Hi" });
      await run({ ...key, input: "again" });
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toEqual({ ...first, replayed: true });
      expect(model.calls).toHaveLength(2);
      expect(await historyOf(key)).toHaveLength(5);
    });

    test("a turn id that HEAD has forgotten is still known: its tools don't run, and its result is the stored one", async () => {
      let ran = 0;
      const noted = tool({
        name: "note",
        description: "",
        parameters: { type: "object" },
        run: () => `noted ${++ran}`,
      });
      const model = scriptedModel(
        Array.from({ length: 40 }, () => ({
          message: assistantMessage("x".repeat(900) + Math.random()),
        })).flatMap((reply, n) =>
          n === 0 || n === 20
            ? [assistantMessage("", [{ id: "c", name: "note", arguments: {} }]), reply]
            : [reply],
        ),
      );
      const { run } = start(model, { agent: new Agent({ model, tools: [noted] }) });
      const key = newKey();
      const first = await run({ ...key, turnId: "k", input: "Hi" });
      for (let n = 0; n < 18; n++)
        await run({ ...key, turnId: `later ${n}`.replace(" ", "-"), input: "again" });
      expect((await store.read(key))?.recent.size).toBeLessThan(12);
      const before = await store.read(key);
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toEqual({ ...first, replayed: true });
      await expect(run({ ...key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      expect(ran).toBe(1);
      expect(await store.read(key)).toEqual({ ...before, fence: (before?.fence ?? 0) + 2 });
    });

    test("a replay comes before a version check, and before a busy session", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model } = script(assistantMessage("one"), () => gate.promise);
      const key = newKey();
      const first = await run({ ...key, turnId: "k", input: "Hi" });
      const running = run({ ...key, input: "again" });
      await expect.poll(() => model.calls.length).toBe(2);
      const replay = run({ ...key, turnId: "k", input: "Hi", ifMatch: { version: 77 } });
      expect(await replay).toEqual({ ...first, replayed: true });
      await expect(run({ ...key, input: "new", ifMatch: { version: 77 } })).rejects.toThrow(
        VersionMismatchError,
      );
      gate.resolve(assistantMessage("two"));
      await running;
    });

    test("a known turn id with another input is refused", async () => {
      const { run, model } = script(assistantMessage("one"));
      const key = newKey();
      await run({ ...key, turnId: "k", input: "Hi" });
      await expect(run({ ...key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      expect(model.calls).toHaveLength(1);
    });

    test("a turn id that a dead runner left behind is refused with another input, and resumed with its own", async () => {
      const { run, clock } = script(assistantMessage("hello"));
      const key = newKey();
      const left = openTurn({
        turnId: "k",
        requestHash: requestHash({ input: "Hi" }),
        input: "Hi",
      });
      await store.create({ head: head({ ...key, open: left }), nowMs: NOW_MS });
      await store.claim(claimOn(key, { open: left }));
      clock.advance(33_000);
      await expect(run({ ...key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toMatchObject({ final: "hello" });
    });

    test("a deadline that is no number is refused", async () => {
      const { run } = script();
      const late = run({ ...newKey(), input: "Hi", deadlineMs: Number.NaN });
      await expect(late).rejects.toMatchObject({ faults: [{ path: "deadlineMs" }] });
    });

    test("the same turn id in another session or of another owner is another turn", async () => {
      const { run } = script(
        assistantMessage("one"),
        assistantMessage("two"),
        assistantMessage("three"),
      );
      const key = newKey();
      await run({ ...key, turnId: "k", input: "Hi" });
      expect(await run({ ...newKey(), turnId: "k", input: "Hi" })).toMatchObject({
        final: "two",
        replayed: false,
      });
      expect(await run({ ...key, owner: "bob", turnId: "k", input: "Hi" })).toMatchObject({
        final: "three",
      });
    });

    test("a version asked for is kept", async () => {
      const { run } = script(assistantMessage("one"), assistantMessage("two"));
      const key = newKey();
      await expect(run({ ...key, input: "Hi", ifMatch: { version: 1 } })).rejects.toThrow(
        VersionMismatchError,
      );
      expect(await store.read(key)).toBeUndefined();
      await run({ ...key, input: "Hi" });
      await expect(run({ ...key, input: "Hi", ifMatch: { version: 1 } })).rejects.toThrow(
        /at version 2\.1$/,
      );
      const whole = { version: 2, metadataVersion: 1 };
      expect(await run({ ...key, input: "Hi", ifMatch: whole })).toMatchObject({ version: 3 });
    });
  });
};
