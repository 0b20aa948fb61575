import { expect, test } from "vitest";
import { finalText, stepsOf } from "../../lib/agent/steps.ts";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { call } from "./parts.ts";

const started = [systemMessage("be kind"), userMessage("go")];
const worked = [
  assistantMessage("first", [call("1", "add"), call("2", "look")]),
  toolMessage("1", "3"),
  toolMessage("2", ""),
  assistantMessage("", [call("3", "add")]),
  toolMessage("3", "error: boom"),
];
const workedSteps = [
  { index: 0, kind: "tool_call", detail: "add -> 3" },
  { index: 0, kind: "tool_call", detail: "look -> " },
  { index: 1, kind: "tool_call", detail: "add -> error: boom" },
];

test("a step for every call and one for the answer, by the number of the model's message", () => {
  const messages = [...started, ...worked, assistantMessage("done")];
  expect(stepsOf(messages, "final")).toStrictEqual([
    ...workedSteps,
    { index: 2, kind: "final", detail: "done" },
  ]);
  expect(finalText(messages, "final")).toBe("done");
});

test("a turn that used its steps up ends with an error step and no answer", () => {
  const messages = [...started, ...worked];
  expect(stepsOf(messages, "max_steps")).toStrictEqual([
    ...workedSteps,
    { index: 2, kind: "error", detail: "no answer within 2 steps" },
  ]);
  expect(finalText(messages, "max_steps")).toBe("");
});

test("a turn that was allowed no step has the error step alone", () => {
  expect(stepsOf(started, "max_steps")).toStrictEqual([
    { index: 0, kind: "error", detail: "no answer within 0 steps" },
  ]);
});
