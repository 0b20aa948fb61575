/** What becomes of a turn that loses its place to another one, or that is cancelled. */
import type { Agent } from "../agent/agent.ts";
import { resultMessages } from "../agent/results.ts";
import { addUsage, NO_USAGE } from "../agent/usage.ts";
import { assistantMessage, systemMessage, userMessage } from "../session/message.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import type { DoneTurn } from "../session/turn.ts";
import {
  type Head,
  NO_ATTEMPT,
  type Outcome,
  type StoredOpenTurn,
  type WholeOpenTurn,
} from "../store/head.ts";
import { isCallersTurnId, turnKey } from "../store/keys.ts";
import type { Displaced } from "../store/store.ts";

/**
 * The record that keeps a later try of the turn from running its tools again. Without a kept step
 * nothing has happened yet, and an id of our own has no later try: then there is none.
 */
export const abandoned = (seen: Head): Displaced | undefined =>
  seen.open && seen.open.steps > 0 && isCallersTurnId(seen.open.turnId)
    ? recorded(seen, seen.open, "abandoned")
    : undefined;

/** The record of a turn that its caller wants no more, whatever it has done. */
export const cancelled = (seen: Head): Displaced | undefined =>
  seen.open && isCallersTurnId(seen.open.turnId)
    ? recorded(seen, seen.open, "abandoned")
    : undefined;

/** The turn with its kept steps as part of the history, every call with a result, and an end. */
export const interrupted = (
  seen: Head,
  open: WholeOpenTurn,
  { agent, nowMs }: { readonly agent: Agent; readonly nowMs: number },
): Displaced => {
  const { turnId, requestHash, input, startedAt, steps } = open;
  const isFirst = seen.counts.messages === 0 && agent.system !== "";
  const turn: DoneTurn = {
    status: "done",
    turnId,
    startedAt,
    finishedAt: formatTimestamp(nowMs),
    finish: "interrupted",
    usage: steps.reduce((sum, { usage }) => addUsage(sum, usage), NO_USAGE),
    messages: [
      ...(isFirst ? [systemMessage(agent.system)] : []),
      userMessage(input),
      ...steps.flatMap(({ message, results }) => [message, ...resultMessages(message, results)]),
      // Some providers take no user message right behind a tool's result.
      assistantMessage(CLOSING),
    ],
  };
  return { ...recorded(seen, { turnId, requestHash }, "interrupted"), interrupted: turn };
};

const CLOSING = "(interrupted)";

const recorded = (
  { version, claim }: Head,
  { turnId, requestHash }: Pick<StoredOpenTurn, "turnId" | "requestHash">,
  outcome: Outcome,
): Displaced => ({
  turnKey: turnKey(turnId),
  record: { attempt: claim?.attempt ?? NO_ATTEMPT, version, requestHash, outcome },
});
