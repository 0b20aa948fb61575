/** The history as Converse takes it: one message against its rules would block a session. */
import { createHash } from "node:crypto";
import type {
  ContentBlock,
  ConverseCommandInput,
  SystemContentBlock,
  ToolConfiguration,
  Message as Turn,
} from "@aws-sdk/client-bedrock-runtime";
import type { ToolSpec } from "../../agent/model.ts";
import type { JsonObject } from "../../session/json.ts";
import type { Message } from "../../session/message.ts";
import { argumentsFor } from "../arguments.ts";
import { type Block, blocksOf } from "./blocks.ts";

export interface Settings {
  readonly modelId: string;
  /** Of one answer. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** What this model takes and others don't, such as `{ thinking: { type: "adaptive" } }`. */
  readonly additionalFields?: JsonObject;
}

export const requestFor = (
  messages: readonly Message[],
  tools: readonly ToolSpec[],
  { modelId, maxTokens, temperature, additionalFields }: Settings,
): ConverseCommandInput => {
  const system = systemFor(messages);
  const toolConfig = toolConfigFor(messages, tools);
  const inferenceConfig = {
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
  };
  return {
    modelId,
    messages: turnsFor(messages),
    ...(system.length > 0 ? { system } : {}),
    ...(toolConfig ? { toolConfig } : {}),
    ...(Object.keys(inferenceConfig).length > 0 ? { inferenceConfig } : {}),
    ...(additionalFields ? { additionalModelRequestFields: additionalFields } : {}),
  };
};

const systemFor = (messages: readonly Message[]): SystemContentBlock[] =>
  messages.flatMap(({ role, content }) =>
    role === "system" && !isBlank(content) ? [{ text: content }] : [],
  );

/**
 * User and assistant in turns, the user first, each with something to say. Results are the user's:
 * all those of one assistant message go into one, and what the user says next goes in behind them.
 */
const turnsFor = (messages: readonly Message[]): Turn[] => {
  const turns: (Turn & { content: ContentBlock[] })[] = [];
  for (const message of messages) {
    if (message.role === "system") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...contentFor(message));
    else turns.push({ role, content: contentFor(message) });
  }
  if (turns[0]?.role !== "user") turns.unshift({ role: "user", content: [] });
  for (const { content } of turns) {
    if (content.every((block) => block.reasoningContent)) content.push({ text: NO_TEXT });
  }
  return turns;
};

/** Bedrock refuses text that is empty, or nothing but space. */
const NO_TEXT = "(empty)";

const isBlank = (text: string): boolean => text.trim() === "";

const contentFor = (message: Message): ContentBlock[] => {
  const { role, content } = message;
  if (role === "assistant") return blocksOf(message).flatMap(assistantBlock);
  if (role === "user") return isBlank(content) ? [] : [{ text: content }];
  return [
    {
      toolResult: {
        toolUseId: idFor(message.toolCallId ?? ""),
        content: [{ text: isBlank(content) ? NO_TEXT : content }],
        ...(content.startsWith("error:") ? { status: "error" } : {}),
      },
    },
  ];
};

const assistantBlock = (block: Block): ContentBlock[] => {
  switch (block.kind) {
    case "text":
      // Claude refuses an assistant's text that ends in space.
      return isBlank(block.text) ? [] : [{ text: block.text.trimEnd() }];
    case "call": {
      const { id, name, arguments: given } = block.call;
      return [
        { toolUse: { toolUseId: idFor(id), name: nameFor(name), input: argumentsFor(given) } },
      ];
    }
    case "reasoning": {
      const { text, signature } = block;
      return [{ reasoningContent: { reasoningText: { text, signature } } }];
    }
    case "redacted":
      return [{ reasoningContent: { redactedContent: Buffer.from(block.base64, "base64") } }];
  }
};

/**
 * The same for a call and its result, and another for each id: those of other providers may be too
 * long, or hold what Bedrock doesn't take.
 */
const idFor = (id: string): string =>
  TAKEN.test(id) ? id : createHash("sha256").update(id).digest("base64url");

/** A model may have asked for a tool by a name that isn't taken back. */
const nameFor = (name: string): string =>
  TAKEN.test(name) ? name : name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64) || "unnamed";

const TAKEN = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Calls and results in the history are taken only beside a list of tools, and no list may be empty.
 * Where the agent has none any more, the old ones are named, by name alone.
 */
const toolConfigFor = (
  messages: readonly Message[],
  tools: readonly ToolSpec[],
): ToolConfiguration | undefined => {
  const offered = tools.length > 0 ? tools : formerTools(messages);
  if (offered.length === 0) return undefined;
  return {
    tools: offered.map(({ name, description, parameters }) => ({
      toolSpec: {
        name,
        ...(isBlank(description) ? {} : { description }),
        inputSchema: { json: { type: "object", ...parameters } },
      },
    })),
  };
};

const formerTools = (messages: readonly Message[]): ToolSpec[] => {
  const names = messages.flatMap(({ toolCalls }) => toolCalls.map(({ name }) => nameFor(name)));
  return [...new Set(names)].map((name) => ({
    name,
    description: "Isn't available any more.",
    parameters: {},
  }));
};
