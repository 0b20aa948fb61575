/**
 * What an assistant message is made of, block by block. A message itself holds the text and the
 * calls; reasoning, and the order of all blocks, ride along in its `providerData`. A model that
 * reasoned before a call refuses to go on where its reasoning isn't back at the same place.
 */
import { isPlainObject, type JsonObject, type JsonValue } from "../../session/json.ts";
import type { Message, ToolCall } from "../../session/message.ts";

export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly call: ToolCall }
  | { readonly kind: "reasoning"; readonly text: string; readonly signature: string }
  /** Reasoning that only the model can read. */
  | { readonly kind: "redacted"; readonly base64: string };

/** Undefined where the message alone says it all. */
export const dataOf = (blocks: readonly Block[]): JsonObject | undefined =>
  blocks.some(({ kind }) => kind === "reasoning" || kind === "redacted")
    ? { blocks: blocks.map(keptBlock) }
    : undefined;

/** In the order in which the model gave them. */
export const blocksOf = (message: Message): Block[] =>
  restored(message) ?? [
    { kind: "text", text: message.content },
    ...message.toolCalls.map((call): Block => ({ kind: "call", call })),
  ];

/**
 * Text counts by its length and calls by their order: neither is stored twice, and a call may get
 * another id.
 */
const keptBlock = (block: Block): JsonValue => {
  if (block.kind === "text") return { kind: block.kind, length: block.text.length };
  return block.kind === "call" ? { kind: block.kind } : { ...block };
};

/** Undefined where there is no data, or none that fits the message. */
const restored = ({ content, toolCalls, providerData }: Message): Block[] | undefined => {
  const kept = providerData?.data["blocks"];
  if (!Array.isArray(kept)) return undefined;
  const calls = [...toolCalls];
  let textAt = 0;
  const blocks: Block[] = [];
  for (const block of kept) {
    if (!isPlainObject(block)) return undefined;
    const { kind, length, text, signature, base64 } = block;
    if (kind === "text" && typeof length === "number") {
      blocks.push({ kind, text: content.slice(textAt, textAt + length) });
      textAt += length;
    } else if (kind === "reasoning" && typeof text === "string" && typeof signature === "string") {
      blocks.push({ kind, text, signature });
    } else if (kind === "redacted" && typeof base64 === "string") {
      blocks.push({ kind, base64 });
    } else {
      const call = kind === "call" ? calls.shift() : undefined;
      if (!call) return undefined;
      blocks.push({ kind: "call", call });
    }
  }
  return textAt === content.length && calls.length === 0 ? blocks : undefined;
};
