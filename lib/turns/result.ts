import type { Usage } from "../agent/model.ts";
import { finalText, type Step, stepsOf } from "../agent/steps.ts";
import type { Message } from "../session/message.ts";
import type { DoneTurn, Finish } from "../session/turn.ts";

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
