import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import { tool } from "../../lib/agent/tool.ts";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addCall, addTool, anyObject, call, shape } from "./parts.ts";

describe("a turn", () => {
  test("asks the model, runs its tools, asks again, and ends with the answer", async () => {
    const model = scriptedModel([
      assistantMessage("let me see", [addCall]),
      assistantMessage("", [call("c2", "add", { a: 3, b: 4 })]),
      assistantMessage("3 and 7"),
    ]);
    const session = new Session();
    const result = await new Agent({ model, tools: [addTool], system: "be exact" }).runTurn(
      session,
      "1+2, 3+4?",
    );

    const turn = [
      systemMessage("be exact"),
      userMessage("1+2, 3+4?"),
      assistantMessage("let me see", [addCall]),
      toolMessage("c1", "3"),
      assistantMessage("", [call("c2", "add", { a: 3, b: 4 })]),
      toolMessage("c2", "7"),
      assistantMessage("3 and 7"),
    ];
    expect(session.messages).toStrictEqual(turn);
    expect(result).toStrictEqual({
      messages: turn,
      steps: [
        { index: 0, kind: "tool_call", detail: "add -> 3" },
        { index: 1, kind: "tool_call", detail: "add -> 7" },
        { index: 2, kind: "final", detail: "3 and 7" },
      ],
      final: "3 and 7",
      finish: "final",
      usage: { inputTokens: 0, outputTokens: 0 },
    });
    expect(model.calls.map(({ messages }) => messages)).toStrictEqual([
      turn.slice(0, 2),
      turn.slice(0, 4),
      turn.slice(0, 6),
    ]);
    expect(model.calls.map(({ tools }) => tools)).toStrictEqual([
      [addTool.spec],
      [addTool.spec],
      [addTool.spec],
    ]);
  });

  test("works on a copy: the session stays as it was until the turn ends", async () => {
    const session = new Session({ messages: [userMessage("hi"), assistantMessage("hello")] });
    const before = session.messages;
    const seen: number[] = [];
    const look = tool({
      name: "look",
      description: "",
      parameters: anyObject,
      run: () => void seen.push(session.messages.length),
    });
    const model = scriptedModel([
      () => {
        seen.push(session.messages.length);
        return assistantMessage("", [call("c1", "look")]);
      },
      assistantMessage("done"),
    ]);
    const result = await new Agent({ model, tools: [look] }).runTurn(session, "look");
    expect(seen).toEqual([2, 2]);
    expect(before).toHaveLength(2);
    expect(session.messages).toHaveLength(6);
    expect(result.messages).toStrictEqual(session.messages);
    expect(result.messages).not.toBe(session.messages);
  });

  test("A01 shows the model a repaired history, and stores the history as it was", async () => {
    const dangling = [userMessage("go"), assistantMessage("", [addCall])];
    const session = new Session({ messages: dangling });
    const model = scriptedModel([assistantMessage("sorry")]);
    await new Agent({ model }).runTurn(session, "hello?");
    expect(model.calls[0]?.messages).toStrictEqual([
      ...dangling,
      toolMessage("c1", "error: interrupted before a result was recorded; the call may have run"),
      userMessage("hello?"),
    ]);
    expect(session.messages).toStrictEqual([
      ...dangling,
      userMessage("hello?"),
      assistantMessage("sorry"),
    ]);
  });

  test("leaves id, created_at and metadata alone", async () => {
    const session = new Session({
      sessionId: "s1",
      createdAt: "2026-12-01T03:04:05.678901+00:00",
      metadata: { a: [1] },
    });
    const before = session.snapshot();
    await new Agent({ model: scriptedModel([assistantMessage("hi")]) }).runTurn(session, "hi");
    expect({ ...session.snapshot(), messages: [] }).toStrictEqual(before);
  });

  test("makes the user's text well-formed, and takes an empty one", async () => {
    const agent = new Agent({
      model: scriptedModel([assistantMessage("\udc00"), assistantMessage("")]),
    });
    const session = new Session();
    expect((await agent.runTurn(session, "\ud800")).final).toBe("\ufffd");
    expect((await agent.runTurn(session, "")).final).toBe("");
    expect(shape(session.messages)).toBe("user:\ufffd | assistant:\ufffd | user: | assistant:");
  });
});

describe("A12 the system prompt", () => {
  const answers = () =>
    scriptedModel([assistantMessage("1"), assistantMessage("2"), assistantMessage("3")]);

  test("stands in a session once, as it was when the session began", async () => {
    const session = new Session();
    const model = answers();
    await new Agent({ model, system: "P1" }).runTurn(session, "a");
    for (const input of ["b", "c"])
      await new Agent({ model, system: "P2" }).runTurn(session, input);
    expect(shape(session.messages)).toBe(
      "system:P1 | user:a | assistant:1 | user:b | assistant:2 | user:c | assistant:3",
    );
    expect(model.calls.map(({ messages }) => messages[0])).toEqual(
      Array(3).fill(systemMessage("P1")),
    );
  });

  test("isn't added to a history that began without one, and isn't there where it is empty", async () => {
    const session = new Session();
    await new Agent({ model: answers() }).runTurn(session, "a");
    await new Agent({ model: answers(), system: "late" }).runTurn(session, "b");
    expect(shape(session.messages)).toBe("user:a | assistant:1 | user:b | assistant:1");
  });
});

describe("A10 a turn out of steps", () => {
  const eager = (): Model => ({
    complete: async () => ({ message: assistantMessage("", [addCall]) }),
  });

  test.each([1, 2, 8])(
    "after %i ends with an error step, all pairs closed and kept",
    async (maxSteps) => {
      const session = new Session();
      const result = await new Agent({ model: eager(), tools: [addTool], maxSteps }).runTurn(
        session,
        "go",
      );
      const pair = [assistantMessage("", [addCall]), toolMessage("c1", "3")];
      expect(session.messages).toStrictEqual([
        userMessage("go"),
        ...Array(maxSteps).fill(pair).flat(),
      ]);
      expect(result).toMatchObject({ final: "", finish: "max_steps" });
      expect(result.steps).toStrictEqual([
        ...Array.from({ length: maxSteps }, (_, index) => ({
          index,
          kind: "tool_call",
          detail: "add -> 3",
        })),
        { index: maxSteps, kind: "error", detail: `no answer within ${maxSteps} steps` },
      ]);
    },
  );

  test("after 0 asks no model and keeps the user's message", async () => {
    const model = scriptedModel([]);
    const session = new Session();
    const result = await new Agent({ model, maxSteps: 0, system: "P" }).runTurn(session, "go");
    expect(model.calls).toEqual([]);
    expect(shape(session.messages)).toBe("system:P | user:go");
    expect(result).toMatchObject({ final: "", finish: "max_steps" });
    expect(result.steps).toStrictEqual([
      { index: 0, kind: "error", detail: "no answer within 0 steps" },
    ]);
  });

  test("asks 8 times unless told otherwise", async () => {
    const { steps } = await new Agent({ model: eager(), tools: [addTool] }).runTurn(
      new Session(),
      "go",
    );
    expect(steps).toHaveLength(9);
  });

  test("is gone on with by the next one", async () => {
    const session = new Session();
    await new Agent({ model: eager(), tools: [addTool], maxSteps: 1 }).runTurn(session, "go");
    const model = scriptedModel([assistantMessage("it is 3")]);
    const { final } = await new Agent({ model, maxSteps: 1 }).runTurn(session, "continue");
    expect(final).toBe("it is 3");
    expect(shape(model.calls[0]?.messages ?? [])).toBe(
      "user:go | assistant: | tool:3 | user:continue",
    );
  });

  test("isn't one that answers with its last step", async () => {
    const result = await new Agent({
      model: scriptedModel([assistantMessage("yes")]),
      maxSteps: 1,
    }).runTurn(new Session(), "go");
    expect(result).toMatchObject({ final: "yes", finish: "final" });
  });
});

describe("options that no turn could run with", () => {
  const model = scriptedModel([]);
  test.each<[title: string, options: unknown, message: string]>([
    ["no model", {}, "model must have a method complete"],
    [
      "a model without complete",
      { model: { generate: () => {} } },
      "model must have a method complete",
    ],
    ["maxSteps -1", { model, maxSteps: -1 }, "maxSteps must be a whole number, 0 or more"],
    ["maxSteps 1.5", { model, maxSteps: 1.5 }, "maxSteps must be a whole number, 0 or more"],
    ["maxSteps NaN", { model, maxSteps: Number.NaN }, "maxSteps must be a whole number, 0 or more"],
    [
      "maxSteps Infinity",
      { model, maxSteps: Number.POSITIVE_INFINITY },
      "maxSteps must be a whole number, 0 or more",
    ],
    ['maxSteps "8"', { model, maxSteps: "8" }, "maxSteps must be a whole number, 0 or more"],
    ["a system prompt that is no text", { model, system: 5 }, "system must be a string"],
    ["tools that are no list", { model, tools: "add" }, "tools must be an array"],
    ["a tool of one's own making", { model, tools: [{}] }, "tools[0] must be made with tool()"],
    [
      "two tools of one name",
      { model, tools: [addTool, { ...addTool }] },
      "two tools have the name add",
    ],
  ])("%s: a TypeError", (_title, options, message) => {
    expect(() => new Agent(options as never)).toThrow(new TypeError(message));
  });
});
