/** The history as a prompt: of such a form that strict providers and chat templates take it. */
import type { LanguageModelV2FunctionTool } from "@ai-sdk/provider";
import type { ToolSpec } from "../../agent/model.ts";
import type { JsonObject } from "../../session/json.ts";
import type { Message } from "../../session/message.ts";
import { argumentsFor } from "../arguments.ts";
import { type PartOptions, partsOf } from "./parts.ts";

/** What all versions of the provider interface take. */
export type PromptMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: PromptText[] }
  | { role: "assistant"; content: (PromptText | PromptReasoning | PromptCall)[] }
  | { role: "tool"; content: PromptResult[] };

interface WithOptions {
  providerOptions?: PartOptions;
}
interface PromptText extends WithOptions {
  type: "text";
  text: string;
}
interface PromptReasoning extends WithOptions {
  type: "reasoning";
  text: string;
}
interface PromptCall extends WithOptions {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: JsonObject;
}
interface PromptResult {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: { type: "text" | "error-text"; value: string };
}

export interface PromptOptions {
  readonly tools: readonly ToolSpec[];
  /** Whose data goes back. */
  readonly provider: string;
}

/**
 * One system message, in front. User messages in a row are one, since many chat templates want the
 * roles to take turns; an assistant message that says nothing is left out, for no provider takes it.
 */
export const promptFor = (
  messages: readonly Message[],
  { tools, provider }: PromptOptions,
): PromptMessage[] => {
  const nameFor = namesFor(messages, tools);
  const system = messages
    .filter(({ role, content }) => role === "system" && !isBlank(content))
    .map(({ content }) => content);
  const prompt: PromptMessage[] =
    system.length > 0 ? [{ role: "system", content: system.join("\n\n") }] : [];
  for (const message of messages) {
    const last = prompt.at(-1);
    const text = isBlank(message.content) ? NO_TEXT : message.content;
    if (message.role === "user") {
      const [before] = last?.role === "user" ? last.content : [];
      if (before) before.text = `${before.text}\n\n${text}`;
      else prompt.push({ role: "user", content: [{ type: "text", text }] });
    } else if (message.role === "tool") {
      const result = resultPart(message.toolCallId ?? "", text, nameFor);
      if (last?.role === "tool") last.content.push(result);
      else prompt.push({ role: "tool", content: [result] });
    } else if (message.role === "assistant") {
      if (message.toolCalls.length === 0 && isBlank(message.content)) continue;
      prompt.push({ role: "assistant", content: assistantParts(message, provider, nameFor) });
    }
  }
  return prompt;
};

export const toolsFor = (tools: readonly ToolSpec[]): LanguageModelV2FunctionTool[] =>
  tools.map(({ name, description, parameters }) => ({
    type: "function",
    name,
    description,
    inputSchema: parameters as LanguageModelV2FunctionTool["inputSchema"],
  }));

/** Providers refuse text that is empty, or nothing but space. */
const NO_TEXT = "(empty)";

const isBlank = (text: string): boolean => text.trim() === "";

type NameFor = (callId: string) => string;

const assistantParts = (message: Message, provider: string, nameFor: NameFor) =>
  partsOf(message, provider).flatMap((part): (PromptText | PromptReasoning | PromptCall)[] => {
    const options = part.options ? { providerOptions: part.options } : {};
    if (part.kind === "call") {
      const { id, arguments: given } = part.call;
      const input = argumentsFor(given);
      const toolName = nameFor(id);
      return [{ type: "tool-call", toolCallId: id, toolName, input, ...options }];
    }
    if (part.kind === "text" && isBlank(part.text) && !part.options) return [];
    return [{ type: part.kind, text: part.text, ...options }];
  });

const resultPart = (toolCallId: string, text: string, nameFor: NameFor): PromptResult => ({
  type: "tool-result",
  toolCallId,
  toolName: nameFor(toolCallId),
  output: { type: text.startsWith("error:") ? "error-text" : "text", value: text },
});

/**
 * The name of a call's tool. A model may ask for a name that no provider takes back, and the history
 * would be refused for good: of such a name only the usual letters stay.
 */
const namesFor = (messages: readonly Message[], tools: readonly ToolSpec[]): NameFor => {
  const known = new Set(tools.map(({ name }) => name));
  const calls = messages.flatMap(({ toolCalls }) => toolCalls);
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  return (id) => {
    const name = names.get(id) ?? "";
    if (known.has(name)) return name;
    return name.replaceAll(/[^\w-]/g, "_").slice(0, 64) || "unnamed";
  };
};
