import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { modelView } from "../../lib/agent/view.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addTool, call } from "./parts.ts";

const SYSTEM = systemMessage("be kind");
const SIZES = Array.from({ length: 13 }, (_, turns) => turns);

/** A turn with two rounds of calls, of which the first has three at once. */
const turn = (n: number): Message[] => [
  userMessage(`question ${n}`),
  assistantMessage("", [call(`${n}a`, "add"), call(`${n}b`, "add"), call(`${n}c`, "add")]),
  toolMessage(`${n}a`, "1"),
  toolMessage(`${n}b`, "2"),
  toolMessage(`${n}c`, "3"),
  assistantMessage("once more", [call(`${n}d`, "add")]),
  toolMessage(`${n}d`, "4"),
  assistantMessage(`answer ${n}`),
];

const TEN = Array.from({ length: 10 }, (_, n) => turn(n + 1));
const PRESENT = [
  userMessage("the newest"),
  assistantMessage("", [call("x", "add"), call("y", "add")]),
  toolMessage("x", "5"),
  toolMessage("y", "6"),
];

/** Every call has its results right behind it, and no result stands elsewhere. */
const expectPairs = (messages: readonly Message[]): void => {
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++];
    expect(message?.role).not.toBe("tool");
    for (const { id } of message?.toolCalls ?? []) {
      expect(messages[at++]).toMatchObject({ role: "tool", toolCallId: id });
    }
  }
};

describe("A07 a window of turns", () => {
  test.each(SIZES)(
    "of %i shows so many turns before the present one, whole, behind the system prompt",
    (turns) => {
      for (const present of [PRESENT.slice(0, 1), PRESENT]) {
        const view = modelView([SYSTEM, ...TEN.flat(), ...present], { window: { turns } });
        expect(view).toStrictEqual([
          SYSTEM,
          ...TEN.slice(Math.max(0, 10 - turns)).flat(),
          ...present,
        ]);
        expectPairs(view);
      }
    },
  );

  test.each(SIZES)("of %i begins with a user message where there is no system prompt", (turns) => {
    const view = modelView([...TEN.flat(), ...PRESENT], { window: { turns } });
    expect(view[0]?.role).toBe("user");
    expect(view).toContainEqual(userMessage("the newest"));
    expectPairs(view);
  });

  test.each(SIZES)("of %i repairs what it shows", (turns) => {
    const broken = TEN.map((messages, n) =>
      // Each turn has another hole: no result, no answer, results in another order, a result too many.
      n % 2 === 0
        ? messages.filter((_, index) => index !== 1 + (n % 4) && index !== 6)
        : [...messages.slice(0, 2), ...messages.slice(2, 5).toReversed(), ...messages.slice(5)],
    );
    const view = modelView([SYSTEM, ...broken.flat(), ...PRESENT], { window: { turns } });
    expect(view[0]).toStrictEqual(SYSTEM);
    expect(view[1]?.role).toBe("user");
    expect(view.filter(({ role }) => role === "user")).toHaveLength(Math.min(turns, 10) + 1);
    expectPairs(view);
  });

  test("keeps a system message that stands later, and all of an opening that no user began", () => {
    const opening = [assistantMessage("welcome"), SYSTEM, ...turn(1)];
    const later = [systemMessage("be brief"), ...turn(2)];
    const all = [...opening, ...later, ...PRESENT];
    expect(modelView(all, { window: { turns: 1 } })).toStrictEqual([
      SYSTEM,
      systemMessage("be brief"),
      ...turn(2),
      ...PRESENT,
    ]);
    expect(modelView(all, { window: { turns: 2 } })).toStrictEqual([
      SYSTEM,
      ...turn(1),
      ...later,
      ...PRESENT,
    ]);
    expect(modelView(all, { window: { turns: 3 } })).toStrictEqual(all);
  });

  test("of a history without any user message is all of it", () => {
    const messages = [SYSTEM, assistantMessage("welcome")];
    for (const turns of [0, 1, 2])
      expect(modelView(messages, { window: { turns } })).toStrictEqual(messages);
    expect(modelView([], { window: { turns: 0 } })).toStrictEqual([]);
  });

  test("of bytes shows the turns that fit whole, and the present one whatever its size", () => {
    const all = [SYSTEM, ...TEN.flat(), ...PRESENT];
    const sizes = TEN.map((messages) =>
      messages.reduce(
        (sum, { content, toolCalls }) =>
          sum +
          Buffer.byteLength(content) +
          toolCalls.reduce((bytes, call) => bytes + Buffer.byteLength(JSON.stringify(call)), 0),
        0,
      ),
    );
    for (let turns = 0; turns <= 10; turns++) {
      const bytes = sizes.slice(10 - turns).reduce((sum, size) => sum + size, 0);
      const expected = [SYSTEM, ...TEN.slice(10 - turns).flat(), ...PRESENT];
      expect(modelView(all, { window: { bytes } })).toStrictEqual(expected);
      if (turns === 0) continue;
      const fewer = [SYSTEM, ...TEN.slice(11 - turns).flat(), ...PRESENT];
      expect(modelView(all, { window: { bytes: bytes - 1 } })).toStrictEqual(fewer);
      expect(modelView(all, { window: { bytes, turns: turns - 1 } })).toStrictEqual(fewer);
    }
  });

  test("leaves the history as it is", () => {
    const all = [SYSTEM, ...TEN.flat(), ...PRESENT];
    const before = structuredClone(all);
    modelView(all, { window: { turns: 1 } });
    expect(all).toStrictEqual(before);
  });
});

describe("an agent with a window", () => {
  const session = () =>
    new Session({
      sessionId: "s",
      createdAt: "2026-12-01T12:00:00Z",
      metadata: {},
      messages: [SYSTEM, ...TEN.flat()],
    });
  const script = () =>
    scriptedModel([
      assistantMessage("", [call("x", "add", { a: 2, b: 3 }), call("y", "add", { a: 3, b: 3 })]),
      assistantMessage("done"),
    ]);

  test.each(SIZES)(
    "of %i shows the model that at every step, and keeps the whole history",
    async (turns) => {
      const model = script();
      const it = session();
      const agent = new Agent({ model, tools: [addTool], system: "not asked", window: { turns } });
      const result = await agent.runTurn(it, "the newest");
      const shown = [
        SYSTEM,
        ...TEN.slice(Math.max(0, 10 - turns)).flat(),
        userMessage("the newest"),
      ];
      const added = [
        userMessage("the newest"),
        assistantMessage("", [call("x", "add", { a: 2, b: 3 }), call("y", "add", { a: 3, b: 3 })]),
        toolMessage("x", "5"),
        toolMessage("y", "6"),
        assistantMessage("done"),
      ];
      expect(model.calls.map(({ messages }) => messages)).toStrictEqual([
        shown,
        [...shown, ...added.slice(1, 4)],
      ]);
      expect(it.messages).toStrictEqual([SYSTEM, ...TEN.flat(), ...added]);
      expect(result.messages).toStrictEqual(it.messages);
      expect(result).toMatchObject({ final: "done", steps: { length: 3 } });
    },
  );

  test("shows everything without one", async () => {
    const model = script();
    await new Agent({ model, tools: [addTool] }).runTurn(session(), "the newest");
    expect(model.calls[0]?.messages).toStrictEqual([
      SYSTEM,
      ...TEN.flat(),
      userMessage("the newest"),
    ]);
  });

  test.each([0, 1, 12])("of %i begins a new session as any other does", async (turns) => {
    const model = scriptedModel([assistantMessage("hello")]);
    const it = new Session({ sessionId: "s", createdAt: "2026-12-01T12:00:00Z" });
    await new Agent({ model, system: "be kind", window: { turns } }).runTurn(it, "hi");
    expect(model.calls[0]?.messages).toStrictEqual([SYSTEM, userMessage("hi")]);
    expect(it.messages).toStrictEqual([SYSTEM, userMessage("hi"), assistantMessage("hello")]);
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])(
    "can't have %d turns",
    (turns) => {
      expect(() => new Agent({ model: script(), window: { turns } })).toThrow(
        new TypeError("window.turns must be a whole number, 0 or more"),
      );
    },
  );
});
