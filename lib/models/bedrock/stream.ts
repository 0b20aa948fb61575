/** Reads an answer's events to their end. Without its end mark an answer counts for nothing. */
import type {
  ContentBlockDelta,
  ConverseStreamOutput,
  ToolUseBlockStart,
} from "@aws-sdk/client-bedrock-runtime";
import type { Usage } from "../../agent/model.ts";
import { argumentsFrom } from "../arguments.ts";
import type { Block } from "./blocks.ts";
import { type Answer, reasoningBlock, redactedBlock, usageFrom } from "./reply.ts";

export interface Listener {
  readonly signal: AbortSignal;
  readonly onText: (delta: string) => void;
}

/** Undefined where the events end too early: before the end mark, or in a block. */
export const answerIn = async (
  events: AsyncIterable<ConverseStreamOutput>,
  { signal, onText }: Listener,
): Promise<Answer | undefined> => {
  const blocks: Block[] = [];
  /** By index. Text and reasoning begin with their first delta. */
  const open = new Map<number | undefined, OpenBlock>();
  const openBlock = (index: number | undefined): OpenBlock => {
    const block = open.get(index) ?? newBlock();
    open.set(index, block);
    return block;
  };
  let stopReason: string | undefined;
  let usage: Usage | undefined;

  for await (const event of events) {
    signal.throwIfAborted();
    if (event.contentBlockStart) {
      const { contentBlockIndex, start } = event.contentBlockStart;
      const block = openBlock(contentBlockIndex);
      block.toolUse = start?.toolUse;
    } else if (event.contentBlockDelta) {
      const { contentBlockIndex, delta } = event.contentBlockDelta;
      const block = openBlock(contentBlockIndex);
      if (delta) take(block, delta);
      tell(block, delta?.text ?? "", onText);
      signal.throwIfAborted();
    } else if (event.contentBlockStop) {
      const { contentBlockIndex } = event.contentBlockStop;
      const block = open.get(contentBlockIndex);
      if (!block) continue;
      if (block.half !== "") onText(block.half.toWellFormed());
      signal.throwIfAborted();
      blocks.push(...closed(block));
      open.delete(contentBlockIndex);
    } else if (event.messageStop) {
      ({ stopReason } = event.messageStop);
    } else if (event.metadata) {
      usage = usageFrom(event.metadata.usage);
    }
  }
  return stopReason === undefined || open.size > 0 ? undefined : { blocks, stopReason, usage };
};

interface OpenBlock {
  toolUse: ToolUseBlockStart | undefined;
  input: string;
  text: string;
  /** The end of the text, where it isn't told yet. */
  half: string;
  reasoning: string;
  signature: string;
  redacted: Uint8Array[];
}

const newBlock = (): OpenBlock => ({
  toolUse: undefined,
  input: "",
  text: "",
  half: "",
  reasoning: "",
  signature: "",
  redacted: [],
});

const take = (block: OpenBlock, { text, toolUse, reasoningContent }: ContentBlockDelta): void => {
  block.text += text ?? "";
  block.input += toolUse?.input ?? "";
  block.reasoning += reasoningContent?.text ?? "";
  block.signature += reasoningContent?.signature ?? "";
  if (reasoningContent?.redactedContent) block.redacted.push(reasoningContent.redactedContent);
};

/** A character of two halves may come in two deltas, and no listener could write half of one. */
const tell = (block: OpenBlock, delta: string, onText: Listener["onText"]): void => {
  const text = block.half + delta;
  const [half = ""] = /[\uD800-\uDBFF]$/.exec(text.slice(-1)) ?? [];
  const whole = text.slice(0, text.length - half.length).toWellFormed();
  block.half = half;
  if (whole !== "") onText(whole);
};

const closed = ({ toolUse, input, text, ...block }: OpenBlock): Block[] => {
  if (toolUse?.type === "server_tool_use") return [];
  if (toolUse) {
    const { toolUseId: id = "", name = "" } = toolUse;
    return [{ kind: "call", call: { id, name, arguments: argumentsFrom(input) } }];
  }
  if (block.redacted.length > 0) return [redactedBlock(Buffer.concat(block.redacted))];
  if (text !== "") return [{ kind: "text", text }];
  return reasoningBlock(block.reasoning, block.signature);
};
