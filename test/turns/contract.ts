/** What holds of turns on every store. */
import { setImmediate as tick } from "node:timers/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { Agent, ModelFailedError } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import { tool } from "../../lib/agent/tool.ts";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Incarnation, SessionKey, SessionStore } from "../../lib/store/store.ts";
import {
  SessionBusyError,
  SessionNotFoundError,
  TurnIdReusedError,
  TurnInProgressError,
  TurnSupersededError,
  TurnTimeoutError,
  VersionMismatchError,
} from "../../lib/turns/errors.ts";
import { requestHash } from "../../lib/turns/request.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns, type TurnsOptions } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { claimOn, head, hex, NOW_MS, NOW_SECONDS, newKey, openTurn } from "../support/heads.ts";
import { type ScriptedReply, scriptedModel } from "../support/models.ts";

export const turnsContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`turns on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    const start = (model: Model, options: Partial<TurnsOptions> = {}) => {
      const clock = settableClock(NOW_MS);
      const agent = options.agent ?? new Agent({ model, system: "Be kind." });
      return {
        ...createTurns({ store, clock, ...options, agent }),
        sessions: createSessions({ store, clock }),
        clock,
      };
    };
    const script = (...replies: ScriptedReply[]) => {
      const model = scriptedModel(replies);
      return { model, ...start(model) };
    };
    const historyOf = async (key: SessionKey): Promise<readonly Message[]> => {
      const it = await store.read(key);
      return it ? (await createSessions({ store }).export(it)).messages : [];
    };
    const turnsOf = async (key: SessionKey) => {
      const it = await store.read(key);
      return it ? store.turns(it, { from: 1, to: it.version }) : [];
    };

    test("the reference run: A has 7 messages, then 9; B has 3", async () => {
      const model = scriptedModel([
        assistantMessage("", [{ id: "a", name: "add", arguments: { a: 2, b: 3 } }]),
        assistantMessage("", [{ id: "b", name: "add", arguments: { a: 5, b: 15 } }]),
        assistantMessage("20"),
        assistantMessage("You're welcome."),
        assistantMessage("Hello."),
      ]);
      const add = tool({
        name: "add",
        description: "a plus b",
        parameters: { type: "object" },
        run: ({ a, b }: { a: number; b: number }) => a + b,
      });
      const { run, sessions } = start(model, {
        agent: new Agent({ model, tools: [add], system: "Be kind." }),
      });
      const [a, b] = [newKey(), newKey()];

      const first = await run({ ...a, input: "2 + 3 + 15?" });
      expect(first).toMatchObject({ version: 2, final: "20", finish: "final", replayed: false });
      expect(first.steps).toEqual([
        { index: 0, kind: "tool_call", detail: "add -> 5" },
        { index: 1, kind: "tool_call", detail: "add -> 20" },
        { index: 2, kind: "final", detail: "20" },
      ]);
      const after1 = await sessions.read(a);
      const messages1 = await historyOf(a);
      expect(after1.counts).toMatchObject({ messages: 7, turns: 1 });
      await run({ ...a, input: "Thanks" });
      await run({ ...b, input: "Hi" });

      const [headA, headB] = [await sessions.read(a), await sessions.read(b)];
      expect([headA.counts.messages, headB.counts.messages]).toEqual([9, 3]);
      expect(headA).toMatchObject({
        createdAt: after1.createdAt,
        sessionId: a.sessionId,
        version: 3,
      });
      const messages = await historyOf(a);
      expect(messages.filter(({ role }) => role === "system")).toEqual([systemMessage("Be kind.")]);
      expect(messages.slice(0, 7)).toEqual(messages1);
      expect(await historyOf(b)).toEqual([
        systemMessage("Be kind."),
        userMessage("Hi"),
        assistantMessage("Hello."),
      ]);
      const session = await sessions.export(headA);
      expect(Session.restore(JSON.parse(JSON.stringify(session.snapshot())))).toEqual(session);
    });

    test("100 turns at once on 100 sessions see each its own messages", async () => {
      const echo: Model = {
        complete: async (messages) => {
          await tick();
          return { message: assistantMessage(messages.map(({ content }) => content).join("|")) };
        },
      };
      const { run } = start(echo);
      const keys = Array.from({ length: 100 }, newKey);
      for (const round of [1, 2]) {
        await Promise.all(keys.map((key, n) => run({ ...key, input: `round ${round} of ${n}` })));
      }
      for (const [n, key] of keys.entries()) {
        const answer1 = `Be kind.|round 1 of ${n}`;
        expect((await historyOf(key)).map(({ content }) => content)).toEqual([
          "Be kind.",
          `round 1 of ${n}`,
          answer1,
          `round 2 of ${n}`,
          `Be kind.|round 1 of ${n}|${answer1}|round 2 of ${n}`,
        ]);
      }
    });

    test("20 turns at once on one session: the accepted ones are the history, the others never call the model", async () => {
      const inputs: string[] = [];
      const model: Model = {
        complete: async (messages) => {
          inputs.push(messages.at(-1)?.content ?? "");
          await new Promise((resolve) => setTimeout(resolve, 20));
          return { message: assistantMessage(`seen ${messages.length}`) };
        },
      };
      const { run } = start(model);
      const key = newKey();
      const accepted: { input: string; version: number; messages: readonly Message[] }[] = [];
      const send = async (input: string): Promise<void> => {
        try {
          accepted.push({ ...(await run({ ...key, input })), input });
        } catch (error) {
          expect(error).toBeInstanceOf(SessionBusyError);
        }
      };
      for (let wave = 0; wave < 3; wave++) {
        await Promise.all(Array.from({ length: 20 }, (_, n) => send(`turn ${wave}.${n}`)));
      }
      expect(accepted.length).toBeGreaterThanOrEqual(3);
      expect(inputs).toHaveLength(accepted.length);
      accepted.sort((a, b) => a.version - b.version);
      expect(accepted.map(({ version }) => version)).toEqual(accepted.map((_, n) => n + 2));
      expect(inputs).toEqual(accepted.map(({ input }) => input));
      expect(await historyOf(key)).toEqual(accepted.flatMap(({ messages }) => messages));
      expect(await store.read(key)).not.toHaveProperty("claim");
    });

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

    test("an agent with a window is shown the newest turns behind its prompt, and the history is whole", async () => {
      const model = scriptedModel(
        Array.from({ length: 12 }, (_, n) => assistantMessage(`answer ${n} ${"y".repeat(700)}`)),
      );
      const { run } = start(model, {
        agent: new Agent({ model, system: "Be kind.", window: { turns: 2 } }),
      });
      const key = newKey();
      for (let n = 0; n < 12; n++) await run({ ...key, input: `turn ${n}` });
      const shown = model.calls[11]?.messages.map(({ content }) => content.slice(0, 9).trim());
      expect(shown).toEqual(
        ["Be kind.", "turn 9", "answer 9", "turn 10", "answer 10", "turn 11"].map((text) =>
          text.slice(0, 9).trim(),
        ),
      );
      expect(await historyOf(key)).toHaveLength(25);
      expect((await historyOf(key)).filter(({ role }) => role === "system")).toHaveLength(1);
    });

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

    test("a model can't change the history by changing what it was shown", async () => {
      const { run } = script(assistantMessage("one"), (messages) => {
        for (const message of messages) Object.assign(message, { content: "HACK" });
        return assistantMessage("two");
      });
      const key = newKey();
      await run({ ...key, input: "Hi" });
      await expect(run({ ...key, input: "again" })).rejects.toThrow(ModelFailedError);
      expect((await historyOf(key)).map(({ content }) => content)).toEqual([
        "Be kind.",
        "Hi",
        "one",
      ]);
    });

    test("a deadline that is no number is refused", async () => {
      const { run } = script();
      const late = run({ ...newKey(), input: "Hi", deadlineMs: Number.NaN });
      await expect(late).rejects.toMatchObject({ faults: [{ path: "deadlineMs" }] });
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

    test("a model failure leaves the history untouched and the session free, and the same turn id can be tried again", async () => {
      const { run } = script(
        assistantMessage("one"),
        new Error("overloaded"),
        assistantMessage("two"),
      );
      const key = newKey();
      await run({ ...key, input: "Hi" });
      const before = await store.read(key);
      await expect(run({ ...key, turnId: "k", input: "again" })).rejects.toThrow(ModelFailedError);
      expect(await store.read(key)).toEqual({ ...before, fence: 2 });
      expect(await run({ ...key, turnId: "k", input: "again" })).toMatchObject({
        final: "two",
        replayed: false,
      });
      // A11: one user message however many tries.
      expect((await historyOf(key)).filter(({ content }) => content === "again")).toHaveLength(1);
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

    test("a superseding turn takes the place of an earlier one, whose record stays", async () => {
      const { run, model } = script(
        assistantMessage("one"),
        assistantMessage("better"),
        assistantMessage("next"),
      );
      const key = newKey();
      await run({ ...key, turnId: "a", input: "Hi" });
      await run({ ...key, turnId: "b", input: "Hi", supersedes: "a" });
      expect(model.calls[1]?.messages).toEqual([systemMessage("Be kind."), userMessage("Hi")]);
      await run({ ...key, input: "go on" });
      expect((await historyOf(key)).map(({ content }) => content)).toEqual([
        "Be kind.",
        "Hi",
        "better",
        "go on",
        "next",
      ]);
      const it = await store.read(key);
      expect((await turnsOf(key)).map(({ turnId }) => turnId).slice(0, 2)).toEqual(["a", "b"]);
      expect(it?.counts).toMatchObject({ messages: 5, turns: 3 });
      await expect(run({ ...key, input: "Hi", supersedes: "a" })).rejects.toThrow(
        /superseded by b already/,
      );
      await expect(run({ ...key, input: "Hi", supersedes: "zz" })).rejects.toThrow(
        InvalidInputError,
      );
      expect(await store.read(key)).toMatchObject({ version: 4 });
    });

    test("a superseding turn on an unknown session creates nothing", async () => {
      const { run } = script();
      const key = newKey();
      await expect(run({ ...key, input: "Hi", supersedes: "a" })).rejects.toThrow(
        InvalidInputError,
      );
      expect(await store.read(key)).toBeUndefined();
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
