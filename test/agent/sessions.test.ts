import { expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import { tool } from "../../lib/agent/tool.ts";
import { parseJson } from "../../lib/session/json.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addTool, anyObject, call } from "./parts.ts";

const shout = tool<{ text: string }>({
  name: "shout",
  description: "",
  parameters: anyObject,
  run: ({ text }) => text.toUpperCase(),
});

test("one agent runs session A in two turns, each restored from its JSON, and then session B", async () => {
  const model = scriptedModel([
    assistantMessage("", [call("c1", "add", { a: 40, b: 2 })]),
    assistantMessage("", [call("c2", "shout", { text: "done" })]),
    assistantMessage("42, DONE"),
    assistantMessage("as I said: 42"),
    assistantMessage("hello, B"),
  ]);
  const agent = new Agent({ model, tools: [addTool, shout], system: "You are brief." });
  const stored = new Map<string, string>();
  const runTurn = async (sessionId: string, input: string): Promise<Session> => {
    const session = Session.restore(parseJson(stored.get(sessionId) ?? ""));
    await agent.runTurn(session, input);
    stored.set(sessionId, JSON.stringify(session.snapshot()));
    return session;
  };
  for (const sessionId of ["A", "B"]) {
    const createdAt = `2026-12-01T03:04:05.67890${sessionId === "A" ? 1 : 2}+00:00`;
    stored.set(sessionId, JSON.stringify(new Session({ sessionId, createdAt }).snapshot()));
  }

  const first = await runTurn("A", "add 40 and 2, then shout");
  const second = await runTurn("A", "again?");
  const third = await runTurn("B", "hi");

  expect([first, second, third].map(({ messages }) => messages.length)).toEqual([7, 9, 3]);
  const turnOne: Message[] = [
    systemMessage("You are brief."),
    userMessage("add 40 and 2, then shout"),
    assistantMessage("", [call("c1", "add", { a: 40, b: 2 })]),
    toolMessage("c1", "42"),
    assistantMessage("", [call("c2", "shout", { text: "done" })]),
    toolMessage("c2", "DONE"),
    assistantMessage("42, DONE"),
  ];
  expect(first.messages).toStrictEqual(turnOne);
  expect(second.messages).toStrictEqual([
    ...turnOne,
    userMessage("again?"),
    assistantMessage("as I said: 42"),
  ]);
  expect(third.messages).toStrictEqual([
    systemMessage("You are brief."),
    userMessage("hi"),
    assistantMessage("hello, B"),
  ]);
  expect(
    [first, second, third].map(({ sessionId, createdAt }) => `${sessionId} ${createdAt}`),
  ).toEqual([
    "A 2026-12-01T03:04:05.678901+00:00",
    "A 2026-12-01T03:04:05.678901+00:00",
    "B 2026-12-01T03:04:05.678902+00:00",
  ]);
  expect(model.calls.map(({ messages }) => messages.length)).toEqual([2, 4, 6, 8, 2]);
});

test("one agent runs a hundred sessions at once, and none sees another's messages", async () => {
  const waiting: (() => void)[] = [];
  // No call is answered before all sessions of the round have asked; then the last to ask is answered first.
  const model: Model = {
    complete: async (messages) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 100) for (const answer of waiting.splice(0).reverse()) answer();
      });
      const last = messages.at(-1);
      return {
        message:
          last?.role === "user"
            ? assistantMessage("", [call("c", "shout", { text: last.content })])
            : assistantMessage(`you said ${last?.content}`),
      };
    },
  };
  const agent = new Agent({ model, tools: [shout], system: "P" });
  const sessions = Array.from({ length: 100 }, (_, at) => new Session({ sessionId: `s${at}` }));
  for (const word of ["one", "two"]) {
    await Promise.all(
      sessions.map((session) => agent.runTurn(session, `${word} of ${session.sessionId}`)),
    );
  }

  const turnOf = (text: string): Message[] => [
    userMessage(text),
    assistantMessage("", [call("c", "shout", { text })]),
    toolMessage("c", text.toUpperCase()),
    assistantMessage(`you said ${text.toUpperCase()}`),
  ];
  for (const { sessionId, messages } of sessions) {
    expect(messages).toStrictEqual([
      systemMessage("P"),
      ...turnOf(`one of ${sessionId}`),
      ...turnOf(`two of ${sessionId}`),
    ]);
  }
});
