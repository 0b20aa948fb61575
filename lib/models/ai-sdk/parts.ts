/**
 * What an assistant message is made of, part by part. A message itself holds the text and the calls;
 * the order of parts, the reasoning, and what the provider said of each part ride along in its
 * `providerData`, and go back word for word.
 */
import { isPlainObject, type JsonObject, toJsonObject } from "../../session/json.ts";
import type { Message, ToolCall } from "../../session/message.ts";

export type Part = TextPart | CallPart;

export interface TextPart {
  readonly kind: "text" | "reasoning";
  readonly text: string;
  readonly options: PartOptions | undefined;
}

export interface CallPart {
  readonly kind: "call";
  readonly call: ToolCall;
  readonly options: PartOptions | undefined;
}

/** The provider's metadata of a part, which it takes back as options of that part. */
export type PartOptions = Record<string, JsonObject>;

/** Undefined where the message alone says it all. */
export const dataOf = (parts: readonly Part[]): JsonObject | undefined => {
  const firstCall = parts.findIndex(({ kind }) => kind === "call");
  const isPlain = parts.every(
    ({ kind, options }, at) =>
      kind !== "reasoning" && !options && (kind === "call" || firstCall < 0 || at < firstCall),
  );
  return isPlain ? undefined : toJsonObject({ parts: parts.map(keptPart) });
};

/** In order, with what the message's provider needs back. `provider` is shown nothing of another's. */
export const partsOf = (message: Message, provider: string): Part[] => {
  const { content, toolCalls, providerData } = message;
  const kept =
    providerData?.provider === provider ? restored(message, providerData.data) : undefined;
  if (kept) return kept;
  return [
    { kind: "text", text: content, options: undefined },
    ...toolCalls.map((call): Part => ({ kind: "call", call, options: undefined })),
  ];
};

/** Text counts by its length and calls by their order: neither is stored twice, and a call may get another id. */
const keptPart = (part: Part): Record<string, unknown> => {
  const { kind, options } = part;
  if (kind === "call") return { kind, options };
  return kind === "text"
    ? { kind, length: part.text.length, options }
    : { kind, text: part.text, options };
};

/** Undefined where the data doesn't fit the message. */
const restored = ({ content, toolCalls }: Message, { parts }: JsonObject): Part[] | undefined => {
  if (!Array.isArray(parts)) return undefined;
  const calls = [...toolCalls];
  let textAt = 0;
  const result: Part[] = [];
  for (const part of parts) {
    if (!isPlainObject(part)) return undefined;
    const options = isOptions(part["options"]) ? part["options"] : undefined;
    if (part["kind"] === "reasoning" && typeof part["text"] === "string") {
      result.push({ kind: "reasoning", text: part["text"], options });
    } else if (part["kind"] === "text" && typeof part["length"] === "number") {
      const text = content.slice(textAt, textAt + part["length"]);
      textAt += part["length"];
      result.push({ kind: "text", text, options });
    } else {
      const call = part["kind"] === "call" ? calls.shift() : undefined;
      if (!call) return undefined;
      result.push({ kind: "call", call, options });
    }
  }
  return textAt === content.length && calls.length === 0 ? result : undefined;
};

const isOptions = (value: unknown): value is PartOptions =>
  isPlainObject(value) && Object.values(value).every(isPlainObject);
