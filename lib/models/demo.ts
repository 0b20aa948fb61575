/**
 * A model without a key or a network, which says what it is. It keeps nothing between calls: the
 * newest user message gives a plan of operations, the tool results behind it say how far the plan
 * has come, and each call of `complete` asks for the next operation or gives the answer.
 */

import { setImmediate } from "node:timers/promises";
import type { Model, ModelReply, ToolSpec } from "../agent/model.ts";
import { assistantMessage, type Message } from "../session/message.ts";
import { significantDigits } from "./demo/numerals.ts";
import type { Operand, Operation } from "./demo/parse.ts";
import { planFor } from "./demo/plan.ts";
import { type Replies, repliesFor, resultIn } from "./demo/replies.ts";

/**
 * Works out arithmetic in English or Chinese with the tools `add`, `subtract`, `multiply` and
 * `divide`, whose arguments are `{ a, b }` and whose result is a number as text.
 */
export const demoModel = (): Model => ({
  complete: async (messages, tools, { signal, onText }) => {
    signal.throwIfAborted();
    const next = nextStep(messages, tools);
    if (typeof next !== "string") return callReply(messages, next);
    const message = assistantMessage(next);
    for (const piece of message.content.match(/.{1,8}/gsu) ?? []) {
      onText?.(piece);
      await setImmediate();
      signal.throwIfAborted();
    }
    return { message, finishReason: "stop" };
  },
});

interface Step {
  readonly name: string;
  readonly arguments: { readonly a: number; readonly b: number };
}

/** The tool call that comes next, or what there is to say. */
const nextStep = (messages: readonly Message[], tools: readonly ToolSpec[]): Step | string => {
  const asked = messages.findLastIndex((message) => message.role === "user");
  const request = messages[asked]?.content ?? "";
  const replies = repliesFor(request);
  const plan = planFor(request);
  if (plan.kind !== "operations") return replies[plan.kind];

  const { operations } = plan;
  const done = resultsOf(operations, messages.slice(asked + 1), replies);
  if (typeof done === "string") return done;
  const operation = operations[done.length];
  if (!operation) return replies.result(done.at(-1) ?? "");

  const missing = missingTools(operations.slice(done.length), tools);
  if (missing.length > 0) return replies.missingTools(missing);
  const previous = previousResult(messages.slice(0, asked));
  if (previous === undefined && usesPrevious(operations)) return replies.noPrevious;
  const numberOf = (operand: Operand): number => {
    if (operand.kind === "number") return operand.value;
    return Number(operand.kind === "step" ? done[operand.index] : previous);
  };
  return {
    name: operation.tool,
    arguments: { a: numberOf(operation.a), b: numberOf(operation.b) },
  };
};

const callReply = (messages: readonly Message[], step: Step): ModelReply => ({
  message: assistantMessage("", [{ id: freshCallId(messages), ...step }]),
  finishReason: "tool_calls",
});

/** The results of the operations done so far; a text instead, where one of them is of no use. */
const resultsOf = (
  operations: readonly Operation[],
  since: readonly Message[],
  replies: Replies,
): string[] | string => {
  const contents = since.filter((message) => message.role === "tool").map(({ content }) => content);
  const results: string[] = [];
  for (const [index, { tool }] of operations.entries()) {
    const content = contents[index];
    if (content === undefined) break;
    if (/^\s*error/i.test(content)) return replies.toolFailed(tool, excerpt(content));
    const result = numberIn(content);
    if (result === undefined) return replies.toolUnreadable(tool, excerpt(content));
    results.push(result);
  }
  return results;
};

const missingTools = (ahead: readonly Operation[], tools: readonly ToolSpec[]): string[] => {
  const offered = new Set(tools.map(({ name }) => name));
  return [...new Set(ahead.map(({ tool }) => tool))].filter((name) => !offered.has(name));
};

const usesPrevious = (operations: readonly Operation[]): boolean =>
  operations.some(({ a, b }) => a.kind === "previous" || b.kind === "previous");

/**
 * The last result of the conversation: of its last arithmetic tool call, or in its last answer.
 * Where that call failed there is none; an older one isn't what the user has in mind.
 */
const previousResult = (before: readonly Message[]): string | undefined => {
  const calls = before.flatMap(({ toolCalls }) => toolCalls);
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  for (const { role, content, toolCallId } of before.toReversed()) {
    if (role === "tool" && toolNames.has(names.get(toolCallId ?? "") ?? ""))
      return numberIn(content);
    const answer = role === "assistant" ? resultIn(content) : undefined;
    if (answer !== undefined) return numberIn(answer);
  }
  return undefined;
};

const toolNames: ReadonlySet<string> = new Set(["add", "subtract", "multiply", "divide"]);

/** A number as JavaScript writes it, or undefined; more than 17 digits don't fit a double. */
const numberIn = (content: string): string | undefined => {
  const text = content.trim();
  if (text.length > 40 || !/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text)) return undefined;
  return Number.isFinite(Number(text)) && significantDigits(text) <= 17 ? text : undefined;
};

const excerpt = (content: string): string => {
  const [start = ""] = /^.{0,200}/su.exec(content) ?? [];
  return start.length < content.length ? `${start}…` : start;
};

/** Above all ids seen, not a count of them: a window on the history may leave old calls out. */
const freshCallId = (messages: readonly Message[]): string => {
  const numbers = messages
    .flatMap(({ toolCalls }) => toolCalls)
    .map(({ id }) => Number(/^demo_call_(\d{1,15})$/.exec(id)?.[1] ?? 0));
  return `demo_call_${numbers.reduce((max, number) => Math.max(max, number), 0) + 1}`;
};
