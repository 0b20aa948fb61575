import type { Agent, RunResult } from "../agent/agent.ts";
import { summaryMessage } from "../agent/summary.ts";
import { shownTurns } from "../agent/view.ts";
import { systemMessage } from "../session/message.ts";
import { Session } from "../session/session.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, type OpenTurn, type TurnStep, visibleMessages } from "../session/turn.ts";
import { SessionTooLargeError } from "../store/errors.ts";
import type { Head, SessionKey } from "../store/head.ts";
import type { Commit, SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { TurnSupersededError } from "./errors.ts";
import { newestTurns, readOpenTurn, readTurns, wholeHistory } from "./history.ts";
import type { Hold } from "./hold.ts";
import { journalOn } from "./journal.ts";
import { checkReplaceable, type TurnRequest } from "./request.ts";
import { type Shown, summarized } from "./summary.ts";

export interface StartedTurn {
  readonly request: TurnRequest;
  readonly key: SessionKey;
  readonly turnKey: string;
  readonly attempt: string;
  readonly open: OpenTurn;
}

export interface ExecutedTurn {
  readonly done: DoneTurn;
  readonly supersedes?: Replaced;
}

type Replaced = NonNullable<Commit["supersedes"]>;

export interface ExecutorOptions {
  readonly agent: Agent;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly maxHistoryBytes: number;
}

export interface Running {
  readonly signal: AbortSignal;
  readonly hold: Hold;
  /** The record that shows the turn to have ended before; it is looked for while the model thinks. */
  readonly known: Promise<unknown>;
}

/** Restores the session that a turn has claimed, and runs the agent on it. Appends nothing. */
export const executor =
  ({ agent, store, clock, maxHistoryBytes }: ExecutorOptions) =>
  async (
    turn: StartedTurn,
    head: Head,
    { signal, hold, known }: Running,
  ): Promise<ExecutedTurn> => {
    const { request, open } = turn;
    const { supersedes } = request;
    const { window } = agent;
    const newest = window && shownTurns(window);
    const range =
      newest !== undefined && supersedes === undefined
        ? newestTurns(head, newest)
        : wholeHistory(head);
    const { turns: kept = 0, summarize } = window ?? {};
    const isSummarized = summarize && head.version - 1 > 2 * kept;
    const bytes = (head.counts.bytes * (range.to - range.from)) / Math.max(1, head.counts.turns);
    if (bytes > maxHistoryBytes) throw historyTooLarge(head, maxHistoryBytes);
    const restoring = [
      readTurns(store, head, { range, nowMs: clock.nowMs() }),
      keptSteps(store, head, clock.nowMs()),
      store.saveInput(head, request.input),
      isSummarized ? store.summary(head) : Promise.resolve(undefined),
    ] as const;
    // Where one of them fails, the others must not go on behind the caller's back.
    await Promise.allSettled(restoring);
    const [turns, steps, , stored] = await Promise.all(restoring);
    if (supersedes !== undefined) checkReplaceable(supersedes, turns);
    const nowMs = clock.nowMs();
    const { from, summary }: Shown = isSummarized
      ? await summarized({ store, head, turns: kept, summarize, known: stored, signal, nowMs })
      : { from: range.from, summary: undefined };
    const visible = visibleMessages(turns.slice(from - range.from), supersedes);
    // The session's own prompt lies before the window; the agent's stands in for it.
    const isCut = from > 1 && agent.system !== "";
    const system = [
      ...(isCut ? [systemMessage(agent.system)] : []),
      ...(summary === undefined ? [] : [summaryMessage(summary)]),
    ];
    const session = new Session({
      sessionId: head.sessionId,
      createdAt: head.createdAt,
      metadata: head.metadata,
      messages: [...system, ...visible],
    });
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

/** Those that an earlier try of the turn has kept. */
const keptSteps = async (
  store: SessionStore,
  head: Head,
  nowMs: number,
): Promise<readonly TurnStep[]> => {
  if (!head.open?.steps) return [];
  const open = await readOpenTurn(store, head, nowMs);
  if (!open) throw new TurnSupersededError();
  return open.steps;
};

/** @param turns the whole history, from turn 1 on */
const replaced = (turns: readonly DoneTurn[], turnId: string): Replaced => {
  const index = turns.findIndex((turn) => turn.turnId === turnId);
  const messages = turns[index]?.messages.filter(({ role }) => role !== "system") ?? [];
  return { number: index + 1, messages: messages.length };
};

const historyTooLarge = ({ sessionId, counts }: Head, maxBytes: number): SessionTooLargeError =>
  new SessionTooLargeError(
    `session ${sessionId} has ${counts.bytes} bytes of history, and at most ${maxBytes} are restored for a turn: give the agent a window`,
  );
