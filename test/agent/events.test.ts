import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import type { AgentEvent } from "../../lib/agent/events.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addCall, addTool, call } from "./parts.ts";

describe("usage", () => {
  const agentTelling = (...usages: unknown[]) =>
    new Agent({
      tools: [addTool],
      model: {
        complete: async (messages) => {
          const at = messages.filter(({ role }) => role === "assistant").length;
          const message = assistantMessage("", at === usages.length - 1 ? [] : [addCall]);
          return { message, usage: usages[at] } as never;
        },
      },
    });

  test("is summed over the model's calls", async () => {
    const agent = agentTelling({ inputTokens: 10, outputTokens: 1 }, undefined, {
      inputTokens: 30,
      outputTokens: 2,
    });
    const { usage } = await agent.runTurn(new Session(), "go");
    expect(usage).toStrictEqual({ inputTokens: 40, outputTokens: 3 });
  });

  test("that isn't a number counts as 0: a stored NaN couldn't be read again", async () => {
    const agent = agentTelling(
      { inputTokens: Number.NaN, outputTokens: undefined },
      { inputTokens: -1, outputTokens: -7 },
      { inputTokens: 5, outputTokens: Number.POSITIVE_INFINITY },
      { inputTokens: "7", outputTokens: null },
    );
    expect((await agent.runTurn(new Session(), "go")).usage).toStrictEqual({
      inputTokens: 5,
      outputTokens: 0,
    });
  });
});

describe("events", () => {
  const model = () =>
    scriptedModel([
      (_messages, _tools, { onText }) => {
        onText?.("let ");
        onText?.("me see");
        return assistantMessage("let me see", [addCall, call("c2", "nope")]);
      },
      (_messages, _tools, { onText }) => {
        onText?.("3");
        return assistantMessage("3");
      },
    ]);

  test("tell the turn in order", async () => {
    const events: AgentEvent[] = [];
    await new Agent({ model: model(), tools: [addTool] }).runTurn(new Session(), "go", {
      onEvent: (event) => void events.push(event),
    });
    const nope = call("c2", "nope");
    expect(events.slice(0, 5)).toStrictEqual([
      { type: "step.started", index: 0 },
      { type: "text.delta", delta: "let " },
      { type: "text.delta", delta: "me see" },
      { type: "tool.called", call: addCall },
      { type: "tool.called", call: nope },
    ]);
    const returned = events.slice(5, 7);
    expect(returned).toContainEqual({ type: "tool.returned", call: addCall, result: "3" });
    expect(returned).toContainEqual({
      type: "tool.returned",
      call: nope,
      result: 'error: there is no tool named "nope"; there are: add',
    });
    expect(events.slice(7)).toStrictEqual([
      { type: "step.started", index: 1 },
      { type: "text.delta", delta: "3" },
    ]);
  });

  test.each<[title: string, onEvent: () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("the sink is gone");
      },
    ],
    ["rejects", () => Promise.reject(new Error("the sink is gone"))],
    ["never settles", () => new Promise(() => {})],
  ])("R02 don't disturb the turn where their listener %s", async (_title, onEvent) => {
    const session = new Session();
    const options = { onEvent };
    const { final } = await new Agent({ model: model(), tools: [addTool] }).runTurn(
      session,
      "go",
      options,
    );
    expect(final).toBe("3");
    expect(session.messages).toHaveLength(5);
  });
});
