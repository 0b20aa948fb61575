import { type Message, systemMessage, userMessage } from "../session/message.ts";
import type { Model } from "./model.ts";

export interface SummaryRequest {
  /** Of all that stands before `messages`; undefined where nothing does. */
  readonly previous: string | undefined;
  readonly messages: readonly Message[];
  readonly signal: AbortSignal;
}

/**
 * Sums up what a window leaves out. It is asked once for each stretch of history; where it rejects,
 * or gives nothing, the turn goes on without, and the next one asks again.
 */
export type Summarize = (request: SummaryRequest) => Promise<string>;

const INSTRUCTIONS =
  "Sum up the conversation below for yourself, who will go on with it without seeing it: facts, decisions, names, numbers, open questions, and what the user wants. Leave nothing out that may matter later, and add nothing. Answer with the summary alone.";

/** Has a model do it, in one call without tools. */
export const summaryBy =
  (model: Model, instructions = INSTRUCTIONS): Summarize =>
  async ({ previous, messages, signal }) => {
    const conversation = messages.map(({ role, content, toolCalls }) =>
      JSON.stringify({ role, content, ...(toolCalls.length > 0 ? { toolCalls } : {}) }),
    );
    const before = previous === undefined ? [] : [`What came before, summed up:\n${previous}\n`];
    const text = [...before, ...conversation].join("\n");
    const { message } = await model.complete([systemMessage(instructions), userMessage(text)], [], {
      signal,
    });
    return message.content;
  };

/** As the model is shown it, behind the system prompt. */
export const summaryMessage = (text: string): Message =>
  systemMessage(`What came before in this conversation, summed up:\n${text}`);
