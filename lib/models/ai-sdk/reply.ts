/** What a model of the AI SDK answered, as a reply. */
import type {
  LanguageModelV2Content,
  LanguageModelV2FinishReason,
  LanguageModelV2Usage,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3Usage,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { idsOf, unusedId } from "../../agent/ids.ts";
import type { ModelReply, Usage } from "../../agent/model.ts";
import { toJsonObject } from "../../session/json.ts";
import { assistantMessage, type Message } from "../../session/message.ts";
import { argumentsFrom } from "../arguments.ts";
import { dataOf, type Part, type PartOptions } from "./parts.ts";

export type Content = LanguageModelV2Content | LanguageModelV3Content | LanguageModelV4Content;
export type FinishReason =
  | LanguageModelV2FinishReason
  | LanguageModelV3FinishReason
  | LanguageModelV4FinishReason;

/** The same of a reply at once and of a stream that came to its end. */
export interface Answer {
  readonly content: readonly Content[];
  readonly finishReason: FinishReason;
  readonly usage: LanguageModelV2Usage | LanguageModelV3Usage | LanguageModelV4Usage;
}

/**
 * Text and calls make the message. What a provider did by itself (calls that it executed, their
 * results and approvals, sources, files) is left out: nothing here can run or show it, and its gist
 * is in the text.
 */
export const replyFrom = (
  { content, finishReason, usage }: Answer,
  asked: readonly Message[],
  provider: string,
): ModelReply => {
  const used = idsOf(asked);
  const parts = content.flatMap((part) => partFrom(part, used));
  const text = parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("");
  const calls = parts.flatMap((part) => (part.kind === "call" ? [part.call] : []));
  const data = dataOf(parts);
  const billed = usageFrom(usage);
  return {
    message: assistantMessage(text, calls, data && { provider, data }),
    ...(billed ? { usage: billed } : {}),
    finishReason: finishFrom(finishReason).word,
  };
};

export interface Finish {
  /** The provider's own, where it gave one. */
  readonly word: string;
  /** The provider says that its answer failed, or broke off. */
  readonly isFailure: boolean;
  /** The provider gave no word at all. A stream that was cut looks so. */
  readonly isUnsaid: boolean;
}

export const finishFrom = (reason: FinishReason): Finish => {
  const { unified, raw } =
    typeof reason === "string" ? { unified: reason, raw: undefined } : reason;
  return {
    word: raw ?? unified,
    isFailure: unified === "error" || unified === "interrupted" || raw === "error",
    isUnsaid: unified === "unknown" || (typeof reason !== "string" && unified === "other" && !raw),
  };
};

const partFrom = (part: Content, used: Set<string>): Part[] => {
  if (part.type !== "text" && part.type !== "reasoning" && part.type !== "tool-call") return [];
  const options = optionsFrom(part.providerMetadata);
  if (part.type === "tool-call") {
    if (part.providerExecuted) return [];
    const { toolCallId, toolName: name, input } = part;
    return [
      {
        kind: "call",
        call: { id: unusedId(used, toolCallId), name, arguments: argumentsFrom(input) },
        options,
      },
    ];
  }
  return part.text === "" && !options ? [] : [{ kind: part.type, text: part.text, options }];
};

/** As JSON holds it: what a provider gives is typed as that, and checked by nobody. */
const optionsFrom = (metadata: object | undefined): PartOptions | undefined => {
  if (!metadata || Object.keys(metadata).length === 0) return undefined;
  const plain = Object.entries(JSON.parse(JSON.stringify(metadata)) as object);
  return Object.fromEntries(plain.map(([key, value]) => [key, toJsonObject(value)]));
};

const usageFrom = ({ inputTokens, outputTokens }: Answer["usage"]): Usage | undefined => {
  const input = typeof inputTokens === "object" ? inputTokens.total : inputTokens;
  const output = typeof outputTokens === "object" ? outputTokens.total : outputTokens;
  if (input === undefined && output === undefined) return undefined;
  return { inputTokens: input ?? 0, outputTokens: output ?? 0 };
};
