/** How sessions and turns are written in answers. */
import { messageToJson } from "../session/message.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import type { Head } from "../store/store.ts";
import { cutText, type Page } from "../turns/pages.ts";
import type { TurnResult } from "../turns/result.ts";
import { answerBytes, MAX_ANSWER_BYTES } from "./responses.ts";

export const etagOf = ({ version, metadataVersion }: Head): string =>
  `"${version}.${metadataVersion}"`;

export const headJson = (head: Head, nowMs: number) => ({
  session_id: head.sessionId,
  created_at: head.createdAt,
  updated_at: head.updatedAt,
  expires_at: formatTimestamp(head.expiresAtSeconds * 1000),
  version: head.version,
  metadata: head.metadata,
  message_count: head.counts.messages,
  turn_count: head.counts.turns,
  size_bytes: head.counts.bytes,
  turn: openTurnJson(head, nowMs),
});

const openTurnJson = ({ open, claim }: Head, nowMs: number) =>
  open
    ? {
        turn_id: open.turnId,
        status: claim && claim.untilMs > nowMs ? "running" : "interrupted",
        input: open.input,
      }
    : null;

/** A turn whose messages don't fit into an answer is told without them: the history has them. */
export const turnJson = (result: TurnResult) => {
  const whole = {
    turn_id: result.turnId,
    session_id: result.sessionId,
    version: result.version,
    final: result.final,
    finish: result.finish,
    steps: result.steps,
    messages: result.messages.map(messageToJson),
    usage: { input_tokens: result.usage.inputTokens, output_tokens: result.usage.outputTokens },
    replayed: result.replayed,
  };
  if (answerBytes(whole) <= MAX_ANSWER_BYTES) return whole;
  const share = Math.min(MAX_CUT_BYTES, MAX_ANSWER_BYTES / 2 / (whole.steps.length + 1));
  const cut = (text: string): string => {
    const beginning = cutText(text, share);
    return beginning === text ? text : `${beginning}…`;
  };
  const steps = whole.steps.map((step) => ({ ...step, detail: cut(step.detail) }));
  return { ...whole, final: cut(whole.final), steps, messages: [], truncated: true };
};

const MAX_CUT_BYTES = 100_000;

export const pageJson = <T>({ data, nextCursor }: Page<T>) => ({
  data,
  has_more: nextCursor !== undefined,
  next_cursor: nextCursor ?? null,
});
