/** One turn, wherever it stands: being run, left by its runner, in the history, or given up. */
import type { Step } from "../agent/steps.ts";
import type { DoneTurn, TurnStep } from "../session/turn.ts";
import { DamagedSessionError } from "../store/errors.ts";
import type { Head, RecentTurn, WholeOpenTurn } from "../store/head.ts";
import { isCallersTurnId, turnKey } from "../store/keys.ts";
import type { SessionStore } from "../store/store.ts";
import { givenUp, TurnNotFoundError, type TurnSupersededError } from "./errors.ts";
import { readOpenTurn, readTurns, sealedRecord } from "./history.ts";
import { turnsFrom } from "./pages.ts";
import { type TurnResult, turnResult } from "./result.ts";

export type FoundTurn = UnfinishedTurn | FinishedTurn | FailedTurn;

/** Not part of the history yet: "interrupted" is one that nobody runs. */
export interface UnfinishedTurn {
  readonly status: "running" | "interrupted";
  readonly sessionId: string;
  readonly turnId: string;
  readonly input: string;
  /** The input's end is missing: its runner has only begun to store it. */
  readonly isInputCut: boolean;
  readonly startedAt: string;
  readonly supersedes?: string;
  /** Those that are stored. A tool call without a result yet is told by its name alone. */
  readonly steps: readonly Step[];
}

/** Part of the history. */
export interface FinishedTurn {
  readonly status: "done";
  readonly turn: DoneTurn;
  readonly result: TurnResult;
  /** Whether a later turn took its place. */
  readonly isSuperseded: boolean;
}

/** Recorded, but not part of the history. */
export interface FailedTurn {
  readonly status: "failed";
  readonly sessionId: string;
  readonly turnId: string;
  readonly error: TurnSupersededError;
}

export interface Finding {
  readonly store: SessionStore;
  /** The session as it stands now; rejects where it isn't alive. */
  readonly read: () => Promise<Head>;
  readonly nowMs: () => number;
}

/** @throws {TurnNotFoundError} */
export const findTurn = async (finding: Finding, turnId: string): Promise<FoundTurn> => {
  // Ends: each round shows that the session has gone on since it was read.
  for (;;) {
    const head = await finding.read();
    const found =
      head.open?.turnId === turnId
        ? await openTurn(finding, head, head.open.steps)
        : await endedTurn(finding, head, turnId);
    if (found) return found;
  }
};

export const openStatus = ({ claim }: Head, nowMs: number): UnfinishedTurn["status"] =>
  claim && claim.untilMs > nowMs ? "running" : "interrupted";

/** Undefined where the turn has gone on meanwhile. */
const openTurn = async (
  finding: Finding,
  head: Head,
  keptSteps: number,
): Promise<FoundTurn | undefined> => {
  const { store, nowMs } = finding;
  const turnId = head.open?.turnId ?? "";
  // Until its first step is kept, it may be a late delivery of a turn that ended long ago.
  const [record, open] = await Promise.all([
    keptSteps === 0 ? sealedRecord(store, head, turnId) : undefined,
    wholeTurn(finding, head, keptSteps),
  ]);
  if (record) return recordedTurn(finding, head, { turnId, record });
  if (!open) return undefined;
  const { input, startedAt, supersedes, steps } = open;
  return {
    status: openStatus(head, nowMs()),
    sessionId: head.sessionId,
    turnId,
    input,
    isInputCut: open.isInputCut,
    startedAt,
    ...(supersedes === undefined ? {} : { supersedes }),
    steps: steps.flatMap(stepsOf),
  };
};

const wholeTurn = async (
  { store, nowMs }: Finding,
  head: Head,
  keptSteps: number,
): Promise<(WholeOpenTurn & { readonly isInputCut: boolean }) | undefined> => {
  try {
    const whole = await readOpenTurn(store, head, nowMs());
    return whole && { ...whole, isInputCut: false };
  } catch (error) {
    // A long input is stored behind the claim that names it, and before the turn's first step.
    const isCut = error instanceof DamagedSessionError && keptSteps === 0;
    if (!isCut || !head.open) throw error;
    return { ...head.open, steps: [], isInputCut: true };
  }
};

const stepsOf = ({ message, results }: TurnStep, index: number): Step[] =>
  message.toolCalls.map(({ name }, at) => {
    const result = results[at] ?? null;
    return { index, kind: "tool_call", detail: result === null ? name : `${name} -> ${result}` };
  });

/** Undefined where the turn has ended only after HEAD was read. */
const endedTurn = async (
  finding: Finding,
  head: Head,
  turnId: string,
): Promise<FoundTurn | undefined> => {
  const record =
    head.recent.get(turnKey(turnId)) ?? (await sealedRecord(finding.store, head, turnId));
  if (record) return recordedTurn(finding, head, { turnId, record });
  if (!isCallersTurnId(turnId)) {
    const reading = { store: finding.store, head, nowMs: finding.nowMs() };
    // The turns from `tailFrom` on are all in `recent`.
    const older = turnsFrom(reading, "desc", { limit: CHUNK_TURNS, start: head.tailFrom - 1 });
    for await (const { turn, number } of older) {
      if (turn.turnId === turnId) return finishedTurn(head, turn, number);
    }
  }
  throw new TurnNotFoundError(turnId);
};

/** Of history that is in memory at a time, and fewer where they are large. */
const CHUNK_TURNS = 100;

const recordedTurn = async (
  { store, nowMs }: Finding,
  head: Head,
  { turnId, record }: { readonly turnId: string; readonly record: RecentTurn },
): Promise<FoundTurn | undefined> => {
  const { version, outcome } = record;
  if (outcome === "abandoned") {
    return { status: "failed", sessionId: head.sessionId, turnId, error: givenUp() };
  }
  const range = { from: version, to: version + 1 };
  const [turn] = await readTurns(store, head, { range, nowMs: nowMs() });
  return turn && finishedTurn(head, turn, version);
};

const finishedTurn = (head: Head, turn: DoneTurn, number: number): FinishedTurn => ({
  status: "done",
  turn,
  result: turnResult(head.sessionId, turn, { version: number, replayed: true }),
  isSuperseded: head.superseded.includes(number),
});
