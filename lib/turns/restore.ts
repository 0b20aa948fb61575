import type { Agent } from "../agent/agent.ts";
import { summaryMessage } from "../agent/summary.ts";
import { shownTurns } from "../agent/view.ts";
import { systemMessage } from "../session/message.ts";
import { Session } from "../session/session.ts";
import { type DoneTurn, type OpenTurn, type TurnStep, visibleMessages } from "../session/turn.ts";
import { SessionTooLargeError } from "../store/errors.ts";
import type { Head, SessionKey } from "../store/head.ts";
import type { SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";
import { TurnSupersededError } from "./errors.ts";
import { newestTurns, readOpenTurn, readTurns, wholeHistory } from "./history.ts";
import { checkReplaceable, type TurnRequest } from "./request.ts";
import { type Shown, summarized } from "./summary.ts";

export interface StartedTurn {
  readonly request: TurnRequest;
  readonly key: SessionKey;
  readonly turnKey: string;
  readonly attempt: string;
  readonly open: OpenTurn;
}

export interface RestorerOptions {
  readonly agent: Agent;
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly maxHistoryBytes: number;
}

export interface Restored {
  /** As the agent is to see it: behind a window only the newest turns. */
  readonly session: Session;
  /** Of the history: all of it where the turn is to take another one's place. */
  readonly turns: readonly DoneTurn[];
  /** Those that earlier tries of the turn have kept. */
  readonly steps: readonly TurnStep[];
}

/** Restores the session that a turn has claimed, and stores the turn's whole input. */
export const restorer =
  ({ agent, store, clock, maxHistoryBytes }: RestorerOptions) =>
  async ({ request }: StartedTurn, head: Head, signal: AbortSignal): Promise<Restored> => {
    const { supersedes } = request;
    const { window = {} } = agent;
    const nowMs = clock.nowMs();
    const newest = supersedes === undefined ? shownTurns(window) : undefined;
    const range = newest === undefined ? wholeHistory(head) : newestTurns(head, newest);
    const bytes = (head.counts.bytes * (range.to - range.from)) / Math.max(1, head.counts.turns);
    if (bytes > maxHistoryBytes) throw historyTooLarge(head, maxHistoryBytes);
    const { turns: kept = 0, summarize } = window;
    const isSummarized = summarize && head.version - 1 > 2 * kept;
    const reading = [
      readTurns(store, head, { range, nowMs }),
      keptSteps(store, head, nowMs),
      store.saveInput(head, request.input),
      isSummarized ? store.summary(head) : Promise.resolve(undefined),
    ] as const;
    // Where one of them fails, the others must not go on behind the caller's back.
    await Promise.allSettled(reading);
    const [turns, steps, , known] = await Promise.all(reading);
    if (supersedes !== undefined) checkReplaceable(supersedes, turns);
    const { from, summary }: Shown = isSummarized
      ? await summarized({ store, head, turns: kept, summarize, known, signal, nowMs })
      : { from: range.from, summary: undefined };
    const session = new Session({
      sessionId: head.sessionId,
      createdAt: head.createdAt,
      metadata: head.metadata,
      messages: [
        // The session's own prompt lies before the window; the agent's stands in for it.
        ...(from > 1 && agent.system !== "" ? [systemMessage(agent.system)] : []),
        ...(summary === undefined ? [] : [summaryMessage(summary)]),
        ...visibleMessages(turns.slice(from - range.from), supersedes),
      ],
    });
    return { session, turns, steps };
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

const historyTooLarge = ({ sessionId, counts }: Head, maxBytes: number): SessionTooLargeError =>
  new SessionTooLargeError(
    `session ${sessionId} has ${counts.bytes} bytes of history, and at most ${maxBytes} are restored for a turn: give the agent a window`,
  );
