/** Reads a model's stream to its end mark. A stream without one brings an error, and no part of an answer. */
import type {
  LanguageModelV2StreamPart,
  LanguageModelV3StreamPart,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { Answer, Content } from "./reply.ts";

export type StreamPart =
  | LanguageModelV2StreamPart
  | LanguageModelV3StreamPart
  | LanguageModelV4StreamPart;

export interface ReadOptions {
  /** Where it aborts, the stream ends at once, with what else has come already unread. */
  readonly signal: AbortSignal;
  readonly onText: (delta: string) => void;
  /** What to throw for what the stream brought in place of an answer. */
  readonly failure: (error: unknown) => Error;
}

/** Undefined where the stream ends without saying so. */
export const answerIn = async (
  stream: ReadableStream<StreamPart>,
  { signal, onText, failure }: ReadOptions,
): Promise<Answer | undefined> => {
  const reader = stream.getReader();
  // A stream that heeds no signal ends with its reader. What broke already can't be cancelled.
  const letGo = (): void => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", letGo);
  const blocks = contentBlocks();
  const text = wholeCharacters(onText);
  try {
    signal.throwIfAborted();
    for (;;) {
      const part = await nextOf(reader, failure);
      if (!part) return undefined;
      if (part.type === "error") throw failure(part.error);
      if (part.type === "text-delta") text.push(part.delta);
      blocks.take(part);
      if (part.type !== "finish") continue;
      text.end();
      return { content: blocks.content, finishReason: part.finishReason, usage: part.usage };
    }
  } finally {
    signal.removeEventListener("abort", letGo);
    letGo();
  }
};

const nextOf = async (
  reader: ReadableStreamDefaultReader<StreamPart>,
  failure: ReadOptions["failure"],
): Promise<StreamPart | undefined> => {
  try {
    return (await reader.read()).value;
  } catch (error) {
    throw failure(error);
  }
};

interface Block {
  readonly type: "text" | "reasoning";
  text: string;
  providerMetadata?: Extract<Content, { type: "reasoning" }>["providerMetadata"];
}

/**
 * Blocks in the order of their starts, and calls. The pieces of a call's arguments are left aside:
 * a call counts where the provider gives it whole.
 */
const contentBlocks = () => {
  const content: Content[] = [];
  /** By kind and id. An id may be used again once its block has ended. */
  const open = new Map<string, Block>();
  const blockOf = (type: Block["type"], id: string): Block => {
    const key = `${type} ${id}`;
    const known = open.get(key);
    if (known) return known;
    const block: Block = { type, text: "" };
    open.set(key, block);
    content.push(block as Content);
    return block;
  };
  const take = (part: StreamPart): void => {
    switch (part.type) {
      case "text-start":
      case "text-delta":
      case "text-end":
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end": {
        const type = part.type.startsWith("text") ? "text" : "reasoning";
        const block = blockOf(type, part.id);
        if ("delta" in part) block.text += part.delta;
        // The newest holds: a signature comes with the last piece, or with the end.
        if (part.providerMetadata) block.providerMetadata = part.providerMetadata;
        if (part.type.endsWith("-end")) open.delete(`${type} ${part.id}`);
        return;
      }
      case "tool-call":
        content.push(part);
        return;
      default:
    }
  };
  return { content, take };
};

/** A character of two halves may come in two pieces, and no listener could write half of one. */
const wholeCharacters = (tell: (delta: string) => void) => {
  let half = "";
  return {
    push: (delta: string): void => {
      const text = half + delta;
      [half = ""] = /[\uD800-\uDBFF]$/.exec(text) ?? [];
      const whole = text.slice(0, text.length - half.length).toWellFormed();
      if (whole !== "") tell(whole);
    },
    end: (): void => {
      if (half !== "") tell(half.toWellFormed());
    },
  };
};
