import { type Message, toolMessage } from "../session/message.ts";
import type { TurnStep } from "../session/turn.ts";

/** The result of a call that has none: the turn ended, or its runner died, while it ran. */
export const INTERRUPTED = "error: interrupted before a result was recorded; the call may have run";

/** The result of a call that must not run again, where nobody knows whether it ran. */
export const OUTCOME_UNKNOWN =
  "error: the outcome is unknown: the call was begun, and its result got lost; it may have taken effect, and isn't repeated";

/** A step's results as messages, one right behind the other. */
export const resultMessages = ({ toolCalls }: Message, results: TurnStep["results"]): Message[] =>
  toolCalls.map(({ id }, at) => toolMessage(id, results[at] ?? INTERRUPTED));
