/** What Converse answered, as a reply. */
import type { ContentBlock, ConverseCommandOutput } from "@aws-sdk/client-bedrock-runtime";
import { idsOf, unusedId } from "../../agent/ids.ts";
import type { ModelReply, Usage } from "../../agent/model.ts";
import { assistantMessage, type Message } from "../../session/message.ts";
import { argumentsFrom } from "../arguments.ts";
import { type Block, dataOf } from "./blocks.ts";

/** The same of an answer at once and of a stream that came to its end. */
export interface Answer {
  /** A call without an id has an empty one. */
  readonly blocks: readonly Block[];
  readonly stopReason: string;
  readonly usage: Usage | undefined;
}

/**
 * Undefined where it is no whole answer.
 *
 * @param inputs the arguments of calls as JSON text, by the place of their block
 */
export const answerFrom = (
  output: ConverseCommandOutput,
  inputs: readonly (string | undefined)[],
): Answer | undefined => {
  const { stopReason, usage } = output;
  if (stopReason === undefined) return undefined;
  // A guardrail may leave no message at all.
  const content = output.output?.message?.content ?? [];
  const blocks = content.flatMap((block, at) => blockFrom(block, inputs[at] ?? ""));
  return { blocks, stopReason, usage: usageFrom(usage) };
};

export const replyFrom = (
  { blocks, stopReason, usage }: Answer,
  asked: readonly Message[],
  provider: string,
): ModelReply => {
  const used = idsOf(asked);
  const text = blocks.map((block) => (block.kind === "text" ? block.text : "")).join("");
  const calls = blocks.flatMap((block) =>
    block.kind === "call" ? [{ ...block.call, id: unusedId(used, block.call.id) }] : [],
  );
  const data = dataOf(blocks);
  return {
    message: assistantMessage(text, calls, data && { provider, data }),
    ...(usage ? { usage } : {}),
    finishReason: stopReason,
  };
};

export const usageFrom = (usage: ConverseCommandOutput["usage"]): Usage | undefined =>
  usage && { inputTokens: usage.inputTokens ?? 0, outputTokens: usage.outputTokens ?? 0 };

/** Without a signature no model needs its reasoning back, and most refuse it. */
export const reasoningBlock = (text: string, signature: string): Block[] =>
  signature === "" ? [] : [{ kind: "reasoning", text, signature }];

export const redactedBlock = (bytes: Uint8Array): Block => ({
  kind: "redacted",
  base64: Buffer.from(bytes).toString("base64"),
});

/** What the provider called and got by itself is left out: nothing here can run or show it. */
const blockFrom = (block: ContentBlock, input: string): Block[] => {
  const { text, toolUse, reasoningContent, citationsContent } = block;
  if (text !== undefined) return [{ kind: "text", text }];
  if (toolUse && toolUse.type !== "server_tool_use") {
    const { toolUseId: id = "", name = "" } = toolUse;
    return [{ kind: "call", call: { id, name, arguments: argumentsFrom(input) } }];
  }
  if (reasoningContent?.reasoningText) {
    const { text: thought = "", signature = "" } = reasoningContent.reasoningText;
    return reasoningBlock(thought, signature);
  }
  if (reasoningContent?.redactedContent) return [redactedBlock(reasoningContent.redactedContent)];
  const cited = citationsContent?.content ?? [];
  return cited.flatMap((part) =>
    part.text === undefined ? [] : [{ kind: "text", text: part.text }],
  );
};
