import type { Usage } from "../agent/model.ts";
import { finalText, type Step, stepsOf } from "../agent/steps.ts";
import type { Message } from "../session/message.ts";
import type { DoneTurn, Finish } from "../session/turn.ts";
import type { Head, RecentTurn } from "../store/store.ts";

export interface TurnResult {
  readonly turnId: string;
  readonly sessionId: string;
  /** Of the session, with this turn in it. */
  readonly version: number;
  readonly final: string;
  readonly finish: Finish;
  readonly steps: readonly Step[];
  /** Those that this turn added to the history. */
  readonly messages: readonly Message[];
  readonly usage: Usage;
  /** Whether the turn had been done before this call. */
  readonly replayed: boolean;
}

/** The result of a turn that is in the history. A turn's number in it is the version that it was decided on. */
export const resultOf = (head: Head, { version }: RecentTurn, replayed: boolean): TurnResult => {
  const turn = head.tail[version - head.tailFrom];
  if (!turn)
    throw new Error(
      `session ${head.sessionId}: turn ${version} is recorded and not in the history`,
    );
  return turnResult(head.sessionId, turn, { version, replayed });
};

/** @param decided the version that the turn was decided on, and whether it had been done before this call */
export const turnResult = (
  sessionId: string,
  { turnId, messages, finish, usage }: DoneTurn,
  { version, replayed }: { readonly version: number; readonly replayed: boolean },
): TurnResult => ({
  turnId,
  sessionId,
  version: version + 1,
  final: finalText(messages, finish),
  finish,
  steps: stepsOf(messages, finish),
  messages,
  usage,
  replayed,
});
