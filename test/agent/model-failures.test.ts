import { describe, expect, test } from "vitest";
import { Agent, ModelFailedError } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import {
  assistantMessage,
  type Message,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addCall, addTool, shape } from "./parts.ts";

// What rejects need not be an Error.
const rejection = (reason: unknown): Promise<never> => Promise.reject(reason);

describe("a model that fails", () => {
  const calls = assistantMessage("", [addCall]);

  test.each([0, 1, 2])("at its call %i leaves the session as it was", async (at) => {
    const cause = new Error("429 too many requests");
    const model = scriptedModel([...Array(at).fill(calls), cause]);
    const session = new Session({ messages: [userMessage("hi"), assistantMessage("hello")] });
    const before = session.snapshot();
    const turn = new Agent({ model, tools: [addTool], system: "P" }).runTurn(session, "go");
    await expect(turn).rejects.toThrow(
      new ModelFailedError("the model failed: 429 too many requests", { cause }),
    );
    await expect(turn).rejects.toBeInstanceOf(ModelFailedError);
    await expect(turn).rejects.toHaveProperty("cause", cause);
    expect(session.snapshot()).toStrictEqual(before);
  });

  test("A11 leaves no trace in a turn that is tried again", async () => {
    const model = scriptedModel([new Error("429"), new Error("429"), assistantMessage("hello")]);
    const agent = new Agent({ model });
    const session = new Session();
    for (const _ of [1, 2]) await expect(agent.runTurn(session, "hi")).rejects.toThrow("429");
    await agent.runTurn(session, "hi");
    expect(shape(session.messages)).toBe("user:hi | assistant:hello");
  });

  test.each<[title: string, complete: () => unknown, reason: string]>([
    [
      "throws at once",
      () => {
        throw new Error("at once");
      },
      "at once",
    ],
    ["rejects with text", () => rejection("text"), "text"],
    ["rejects with nothing", () => rejection(undefined), "undefined was thrown"],
    ["rejects with a bare object", () => rejection(Object.create(null)), "an object was thrown"],
    ["gives nothing", async () => undefined, "it resolved with undefined in place of a reply"],
    ["gives no message", async () => ({}), "message: must be an object, not undefined"],
    [
      "gives a user's message",
      async () => ({ message: userMessage("hi") }),
      "the model replied with a user message",
    ],
    [
      "gives a tool's message",
      async () => ({ message: toolMessage("c1", "3") }),
      "the model replied with a tool message",
    ],
    [
      "gives no content",
      async () => ({ message: { role: "assistant", toolCalls: [] } }),
      "message.content: must be a string, not undefined",
    ],
    [
      "gives content null",
      async () => ({ message: { ...calls, content: null } }),
      "message.content: must be a string, not null",
    ],
    [
      "C13 gives a field that would be lost",
      async () => ({ message: { ...calls, reasoning: "…" } }),
      "message.reasoning: isn't a known field",
    ],
    [
      "gives calls that aren't a list",
      async () => ({ message: { ...calls, toolCalls: {} } }),
      "message.toolCalls: must be an array, not an object",
    ],
    [
      "gives a call without an id",
      async () => ({ message: { ...calls, toolCalls: [{ name: "add", arguments: {} }] } }),
      "message.toolCalls[0].id: must be a string, not undefined",
    ],
    [
      "gives a call without arguments",
      async () => ({ message: { ...calls, toolCalls: [{ id: "", name: "add" }] } }),
      "message.toolCalls[0].arguments: is missing",
    ],
    [
      "gives arguments JSON can't hold",
      async () => ({ message: { ...calls, toolCalls: [{ ...addCall, arguments: { a: 1n } }] } }),
      "message.toolCalls[0].arguments.a: a bigint can't be written as JSON",
    ],
  ])("that %s fails the turn with the reason", async (_title, complete, reason) => {
    const session = new Session();
    const turn = new Agent({ model: { complete } as Model, tools: [addTool], system: "P" }).runTurn(
      session,
      "go",
    );
    await expect(turn).rejects.toThrow(new ModelFailedError(`the model failed: ${reason}`));
    await expect(turn).rejects.toHaveProperty("cause");
    expect(session.messages).toEqual([]);
  });

  test("to leave toolCalls out is no failure", async () => {
    const message = { role: "assistant", content: "hi" } as Message;
    const session = new Session();
    await new Agent({ model: scriptedModel([message]) }).runTurn(session, "go");
    expect(session.messages[1]).toStrictEqual(assistantMessage("hi"));
  });
});
