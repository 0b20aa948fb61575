import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { summaryBy } from "../../lib/agent/summary.ts";
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import { scriptedModel } from "../support/models.ts";
import { call } from "./parts.ts";

const signal = new AbortController().signal;

describe("a summary by a model", () => {
  const messages = [
    userMessage("né😀"),
    assistantMessage("", [call("1", "add", { a: 1 })]),
    toolMessage("1", "2"),
  ];

  test("is asked for with the whole stretch, and what was summed up before it", async () => {
    const model = scriptedModel([assistantMessage("short"), assistantMessage("shorter")]);
    expect(await summaryBy(model)({ previous: undefined, messages, signal })).toBe("short");
    const summarize = summaryBy(model, "In one word.");
    expect(await summarize({ previous: "short", messages, signal })).toBe("shorter");
    const [first, second] = model.calls.map((asked) => asked.messages.map((it) => it.content));
    expect(first?.[0]).toMatch(/^Sum up the conversation/);
    expect(second?.[0]).toBe("In one word.");
    for (const part of ['"content":"né😀"', '"arguments":{"a":1}', '"role":"tool","content":"2"']) {
      expect(first?.[1]).toContain(part);
    }
    expect(second?.[1]).toMatch(/^What came before, summed up:\nshort\n/);
    expect(model.calls.every(({ tools }) => tools.length === 0)).toBe(true);
  });

  test("needs a window of turns", () => {
    const model = scriptedModel([]);
    for (const window of [{}, { bytes: 9 }, { turns: 0 }]) {
      expect(
        () => new Agent({ model, window: { ...window, summarize: summaryBy(model) } }),
      ).toThrow("window.summarize needs window.turns, 1 or more");
    }
  });
});
