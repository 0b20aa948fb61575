import type { RunResult } from "../agent/agent.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import type { DoneTurn } from "../session/turn.ts";
import type { Head } from "../store/head.ts";
import type { Commit } from "../store/store.ts";
import type { Hold } from "./hold.ts";
import { journalOn } from "./journal.ts";
import { type RestorerOptions, restorer, type StartedTurn } from "./restore.ts";

export interface ExecutedTurn {
  readonly done: DoneTurn;
  readonly supersedes?: Replaced;
}

type Replaced = NonNullable<Commit["supersedes"]>;

export interface Running {
  readonly signal: AbortSignal;
  readonly hold: Hold;
  /** The record that shows the turn to have ended before; it is looked for while the model thinks. */
  readonly known: Promise<unknown>;
}

/** Restores the session that a turn has claimed, and runs the agent on it. Appends nothing. */
export const executor = ({ agent, clock, ...options }: RestorerOptions) => {
  const restore = restorer({ agent, clock, ...options });
  return async (
    turn: StartedTurn,
    head: Head,
    { signal, hold, known }: Running,
  ): Promise<ExecutedTurn> => {
    const { request, open } = turn;
    const { supersedes } = request;
    const { session, turns, steps } = await restore(turn, head, signal);
    const before = session.messages.length;
    const ready = known.then(() => signal.throwIfAborted());
    // A turn without steps never asks.
    ready.catch(() => {});
    const result: RunResult = await agent.runTurn(session, request.input, {
      signal,
      journal: journalOn({ hold, clock, steps, ready }),
      fence: head.fence,
      turnId: open.turnId,
      idempotencyScope: `${head.incarnation}/${open.requestHash}`,
      ...(request.onEvent ? { onEvent: request.onEvent } : {}),
    });
    const done: DoneTurn = {
      status: "done",
      turnId: open.turnId,
      messages: result.messages.slice(before),
      startedAt: head.open?.startedAt ?? open.startedAt,
      finishedAt: formatTimestamp(clock.nowMs()),
      finish: result.finish,
      usage: result.usage,
      ...(supersedes === undefined ? {} : { supersedes }),
    };
    return supersedes === undefined ? { done } : { done, supersedes: replaced(turns, supersedes) };
  };
};

/** @param turns the whole history, from turn 1 on */
const replaced = (turns: readonly DoneTurn[], turnId: string): Replaced => {
  const index = turns.findIndex((turn) => turn.turnId === turnId);
  const messages = turns[index]?.messages.filter(({ role }) => role !== "system") ?? [];
  return { number: index + 1, messages: messages.length };
};
