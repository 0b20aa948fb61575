/**
 * The history of a session is a list of turns, and it only grows. A turn that replaces another one
 * is appended like any other; `visibleMessages` leaves the replaced one out.
 */
import type { Message } from "./message.ts";

export type Turn = DoneTurn | OpenTurn;

/** Part of the history. */
export interface DoneTurn {
  readonly status: "done";
  readonly turnId: string;
  /** The messages that this turn added, the user's first (behind the system prompt, in a session's first turn). */
  readonly messages: readonly Message[];
  readonly startedAt: string;
  readonly finishedAt: string;
  readonly finish: Finish;
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number };
  /** The id of an earlier turn whose place this one takes. */
  readonly supersedes?: string;
}

/** Being run, or left behind by a runner that died. Not part of the history. */
export interface OpenTurn {
  readonly status: "open";
  readonly turnId: string;
  /** Over everything that the caller gave and that changes the turn. */
  readonly requestHash: string;
  readonly input: string;
  readonly startedAt: string;
  /** The id of the earlier turn whose place this one is to take. */
  readonly supersedes?: string;
}

/** What a turn does before its end: the model asks for tools, and gets their results. */
export interface TurnStep {
  readonly message: Message;
  readonly usage: DoneTurn["usage"];
  /** One for each tool call of the message; null where the call isn't finished. */
  readonly results: readonly (string | null)[];
}

/**
 * "final": the model answered. "max_steps": it still asked for tools when its steps were used up.
 * "interrupted": another turn took its place; what it had done by then is in the history.
 */
export type Finish = "final" | "max_steps" | "interrupted";

/**
 * The messages of a history in a row, as `visibleTurns` gives them.
 *
 * @param superseding the id of one more turn to leave out: the one that is about to be replaced
 */
export const visibleMessages = (turns: readonly DoneTurn[], superseding?: string): Message[] =>
  visibleTurns(turns, superseding).flatMap(({ messages }) => messages);

/**
 * Every turn of a history with the messages of it that still count: none of a superseded one but
 * the system prompt, which is the session's and stands in it once.
 */
export const visibleTurns = (
  turns: readonly DoneTurn[],
  superseding?: string,
): { readonly messages: readonly Message[] }[] => {
  const superseded = new Set([superseding, ...turns.map((turn) => turn.supersedes)]);
  return turns.map(({ turnId, messages }) => ({
    messages: superseded.has(turnId) ? messages.filter(({ role }) => role === "system") : messages,
  }));
};

/** Cuts messages without turns, such as a snapshot's, before each user message. */
export const splitIntoTurns = (messages: readonly Message[]): Message[][] => {
  const turns: Message[][] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const startsTurn = message.role === "user" && last?.some(({ role }) => role !== "system");
    if (!last || startsTurn) turns.push([message]);
    else last.push(message);
  }
  return turns;
};
