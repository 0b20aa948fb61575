/** How sessions and turns are written in answers. */
import type { Step } from "../agent/steps.ts";
import { type MessageJson, messageToJson } from "../session/message.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import type { Head } from "../store/head.ts";
import { type FoundTurn, openStatus } from "../turns/find.ts";
import { cutText, type Page } from "../turns/pages.ts";
import type { TurnResult } from "../turns/result.ts";
import { problemOf } from "./problem.ts";
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

const openTurnJson = (head: Head, nowMs: number) =>
  head.open
    ? { turn_id: head.open.turnId, status: openStatus(head, nowMs), input: head.open.input }
    : null;

export const turnJson = (result: TurnResult) =>
  fitting({ ...resultJson(result), replayed: result.replayed });

export const foundTurnJson = (found: FoundTurn) => {
  const { status } = found;
  switch (found.status) {
    case "done": {
      const { turn, result, isSuperseded } = found;
      return fitting({
        status,
        started_at: turn.startedAt,
        finished_at: turn.finishedAt,
        supersedes: turn.supersedes ?? null,
        superseded: isSuperseded,
        ...resultJson(result),
      });
    }
    case "failed": {
      const { turnId: turn_id, sessionId: session_id, error } = found;
      const { code } = problemOf(error);
      return { status, turn_id, session_id, error: { code, detail: error.message } };
    }
    default:
      return fitting({
        status,
        turn_id: found.turnId,
        session_id: found.sessionId,
        input: found.input,
        started_at: found.startedAt,
        supersedes: found.supersedes ?? null,
        steps: found.steps,
        ...(found.isInputCut ? { truncated: true } : {}),
      });
  }
};

const resultJson = (result: TurnResult) => ({
  turn_id: result.turnId,
  session_id: result.sessionId,
  version: result.version,
  final: result.final,
  finish: result.finish,
  steps: result.steps,
  messages: result.messages.map(messageToJson),
  usage: { input_tokens: result.usage.inputTokens, output_tokens: result.usage.outputTokens },
});

interface TurnTexts {
  readonly steps: readonly Step[];
  readonly messages?: readonly MessageJson[];
  readonly final?: string;
  readonly input?: string;
}

/** A turn that doesn't fit into an answer is told without its messages, which the history has, and its texts are cut. */
const fitting = <T extends TurnTexts>(whole: T) => {
  if (answerBytes(whole) <= MAX_ANSWER_BYTES) return whole;
  const share = Math.min(MAX_CUT_BYTES, MAX_ANSWER_BYTES / 2 / (whole.steps.length + 1));
  const cut = (text: string): string => {
    const beginning = cutText(text, share);
    return beginning === text ? text : `${beginning}…`;
  };
  const { messages, final, input } = whole;
  return {
    ...whole,
    steps: whole.steps.map((step) => ({ ...step, detail: cut(step.detail) })),
    ...(messages === undefined ? {} : { messages: [] }),
    ...(final === undefined ? {} : { final: cut(final) }),
    ...(input === undefined ? {} : { input: cut(input) }),
    truncated: true,
  };
};

const MAX_CUT_BYTES = 100_000;

export const pageJson = <T>({ data, nextCursor }: Page<T>) => ({
  data,
  has_more: nextCursor !== undefined,
  next_cursor: nextCursor ?? null,
});
