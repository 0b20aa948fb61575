/** What holds on every store of the history that turns make, and of what a model sees. */
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
import type { SessionStore } from "../../lib/store/store.ts";
import { SessionBusyError } from "../../lib/turns/errors.ts";
import { newKey } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { scriptedTurns } from "./scripted.ts";

export const historyContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`turns on ${name}`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });
    const { start, script, historyOf, turnsOf } = scriptedTurns(() => store);

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
  });
};
