/** What holds on every store of sessions: forks, metadata, snapshots, expiry, deletion. */
import { beforeAll, describe, expect, test } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Incarnation, SessionStore } from "../../lib/store/store.ts";
import { SessionNotFoundError, VersionMismatchError } from "../../lib/turns/errors.ts";
import { head, hex, NOW_MS, NOW_SECONDS, newKey } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { scriptedTurns } from "./scripted.ts";

export const sessionsContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`turns on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });
    const { start, script, historyOf, turnsOf } = scriptedTurns(() => store);

    test("a fork has the history of its original and a life of its own", async () => {
      const { run, sessions, clock } = script(
        ...Array.from({ length: 8 }, (_, n) => assistantMessage(`answer ${n} ${"z".repeat(900)}`)),
      );
      const key = newKey();
      for (let n = 0; n < 6; n++) await run({ ...key, turnId: `t${n}`, input: `turn ${n}` });
      clock.advance(86_400_000);
      const whole = await sessions.fork(key);
      const part = await sessions.fork(key, { atTurn: "t2", sessionId: hex() });
      expect(await historyOf(whole)).toEqual(await historyOf(key));
      expect((await turnsOf(part)).map(({ turnId }) => turnId)).toEqual(["t0", "t1", "t2"]);
      expect(part).toMatchObject({ version: 4, counts: { messages: 7, turns: 3 }, metadata: {} });
      expect(whole.expiresAtSeconds).toBe(Math.floor(clock.nowMs() / 1000) + 30 * 86_400);
      await sessions.delete(key);
      expect(await run({ ...part, turnId: "t1", input: "turn 1" })).toMatchObject({
        replayed: true,
        version: 3,
      });
      expect(await run({ ...whole, turnId: "new", input: "on" })).toMatchObject({ version: 8 });
      expect(await historyOf(whole)).toHaveLength(15);
      await expect(sessions.fork(key)).rejects.toThrow(SessionNotFoundError);
      await expect(sessions.fork(whole, { atTurn: "nope" })).rejects.toThrow(InvalidInputError);
    });

    test("two merge patches at once both count, and a running turn doesn't notice", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, sessions } = script(() => gate.promise);
      const key = newKey();
      await sessions.create({ ...key, metadata: { a: 1, b: { c: 2, d: 3 } } });
      const running = run({ ...key, input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      await Promise.all([
        sessions.patchMetadata(key, { a: null, e: [1, null] }),
        sessions.patchMetadata(key, { b: { c: null, f: 5 } }),
      ]);
      gate.resolve(assistantMessage("Hello."));
      expect(await running).toMatchObject({ version: 2 });
      expect(await sessions.read(key)).toMatchObject({
        metadata: { b: { d: 3, f: 5 }, e: [1, null] },
        metadataVersion: 3,
        version: 2,
      });
      await expect(
        sessions.patchMetadata(key, {}, { version: 2, metadataVersion: 2 }),
      ).rejects.toThrow(VersionMismatchError);
    });

    test("a snapshot from the future isn't imported", async () => {
      const { sessions } = script();
      const session = new Session({ createdAt: "2100-12-03T12:00:00+00:00" });
      const imported = sessions.import(
        { owner: "ann", sessionId: session.sessionId },
        session.snapshot(),
      );
      await expect(imported).rejects.toMatchObject({
        faults: [{ path: "created_at", message: "lies in the future" }],
      });
    });

    test("a session deleted while a turn runs stays deleted", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, sessions } = script(() => gate.promise, assistantMessage("new life"));
      const key = newKey();
      const running = run({ ...key, turnId: "k", input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      await sessions.delete(key);
      gate.resolve(assistantMessage("Hello."));
      await expect(running).rejects.toThrow(SessionNotFoundError);
      await expect(sessions.read(key)).rejects.toThrow(SessionNotFoundError);
      // The same turn id in a new life of the session id is a new turn.
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toMatchObject({
        final: "new life",
        version: 2,
      });
    });

    test("a turn that runs across its session's expiry isn't told done", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, clock, sessions } = script(() => gate.promise);
      const key = newKey();
      const running = run({ ...key, input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      clock.advance(30 * 86_400_000, { wake: false });
      gate.resolve(assistantMessage("Hello."));
      await expect(running).rejects.toThrow(SessionNotFoundError);
      await expect(running).rejects.toThrow("expired while the turn ran");
      await expect(sessions.read(key)).rejects.toThrow(SessionNotFoundError);
    });

    test("a session created over a dead one leaves nothing of it behind", async () => {
      const { run, sessions, clock } = script(
        ...Array.from({ length: 12 }, () => assistantMessage("x".repeat(1700) + Math.random())),
      );
      const [byTurn, byCreation] = [newKey(), newKey()];
      const dead: Incarnation[] = [];
      for (const key of [byTurn, byCreation]) {
        for (let n = 0; n < 5; n++) await run({ ...key, turnId: `t${n}`, input: "Hi" });
        dead.push({ key, incarnation: (await sessions.read(key)).incarnation });
      }
      const known = () => Promise.all(dead.map((place) => store.findTurn(place, turnKey("t0"))));
      expect(await known()).toMatchObject([{ version: 1 }, { version: 1 }]);
      clock.advance(30 * 86_400_000);
      await run({ ...byTurn, input: "Hi" });
      await sessions.create(byCreation);
      expect(await known()).toEqual([undefined, undefined]);
    });

    test("a session created unheard, and deleted since, isn't mistaken for the one created over it", async () => {
      const model = scriptedModel([assistantMessage("Hello.")]);
      let tries = 0;
      const { run, sessions } = start(model, {
        store: {
          ...store,
          create: async (write) => {
            if (tries++ > 0) return store.create(write);
            await store.create(write);
            await sessions.delete(key);
            // The network's own second send.
            return store.create(write);
          },
          purge: async (place) => {
            purged.push(place.incarnation);
            await store.purge(place);
          },
        },
      });
      const key = newKey();
      const purged: string[] = [];
      await run({ ...key, turnId: "k", input: "Hi" });
      expect(purged).toHaveLength(1);
      expect(purged).not.toContain((await sessions.read(key)).incarnation);
    });

    test("a session recreated while a turn runs doesn't get its turn", async () => {
      const gate = Promise.withResolvers<Message>();
      const { run, model, sessions } = script(() => gate.promise);
      const key = newKey();
      const running = run({ ...key, input: "Hi" });
      await expect.poll(() => model.calls.length).toBe(1);
      await sessions.delete(key);
      const recreated = await sessions.create(key);
      gate.resolve(assistantMessage("Hello."));
      await expect(running).rejects.toThrow(SessionNotFoundError);
      expect(await store.read(key)).toEqual(recreated);
    });

    test("an expired session is invisible, and a turn on its id begins a new one", async () => {
      const { run, sessions, clock } = script(assistantMessage("one"), assistantMessage("two"));
      const key = newKey();
      await run({ ...key, turnId: "k", input: "Hi" });
      clock.advance(30 * 86_400_000);
      await expect(sessions.read(key)).rejects.toThrow(SessionNotFoundError);
      expect(await run({ ...key, turnId: "k", input: "Hi" })).toMatchObject({
        final: "two",
        version: 2,
      });
      expect(await historyOf(key)).toHaveLength(3);
    });

    test("a Python snapshot goes through the store and comes out equal, created_at to the letter", async () => {
      const { sessions } = script();
      const key = { owner: "ann", sessionId: hex().slice(0, 12) };
      const snapshot = {
        session_id: key.sessionId,
        created_at: "2100-12-01T03:04:05.678901+00:00",
        metadata: { 语言: "中文", n: null, list: [1, 2.5, { deep: [] }] },
        messages: [
          { role: "system", content: "你好", tool_calls: [], tool_call_id: null },
          { role: "user", content: "先算 2+3", tool_calls: [], tool_call_id: null },
          {
            role: "assistant",
            content: "",
            tool_calls: [{ id: "c1", name: "add", arguments: { a: 2, b: { c: [null, 1e-7] } } }],
            tool_call_id: null,
          },
          { role: "tool", content: "5", tool_calls: [], tool_call_id: "c1" },
          { role: "assistant", content: "5", tool_calls: [], tool_call_id: null },
          { role: "user", content: "谢谢", tool_calls: [], tool_call_id: null },
        ],
      };
      const imported = await sessions.import(key, snapshot);
      expect(imported).toMatchObject({
        version: 3,
        expiresAtSeconds: Date.UTC(2100, 11, 31, 3, 4, 5) / 1000,
        counts: { messages: 6, turns: 2 },
      });
      const exported = (await sessions.export(await sessions.read(key))).snapshot();
      expect(exported).toEqual(snapshot);
      expect(JSON.stringify(exported)).toBe(JSON.stringify(snapshot));
    });

    test("an expired snapshot isn't imported", async () => {
      const { sessions } = script();
      const session = new Session({ createdAt: "2100-11-01T12:00:00+00:00" });
      const imported = sessions.import(
        { owner: "ann", sessionId: session.sessionId },
        session.snapshot(),
      );
      await expect(imported).rejects.toMatchObject({ faults: [{ path: "created_at" }] });
    });

    test("creating over an expired leftover works, once", async () => {
      const { sessions } = script();
      const dead = head({ expiresAtSeconds: NOW_SECONDS });
      const key = { owner: dead.owner, sessionId: dead.sessionId };
      await store.create({ head: dead, nowMs: NOW_MS });
      const results = await Promise.allSettled(
        Array.from({ length: 5 }, () => sessions.create(key)),
      );
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    });
  });
};
