/** Histories that weren't made by turns of this session: a snapshot's, or another session's. */
import { NO_USAGE } from "../agent/usage.ts";
import { InvalidSnapshotError } from "../session/invalid.ts";
import type { Message } from "../session/message.ts";
import type { Session } from "../session/session.ts";
import { parseTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, splitIntoTurns } from "../session/turn.ts";
import { NO_ATTEMPT, type RecentTurn } from "../store/head.ts";
import { isCallersTurnId, turnKey } from "../store/keys.ts";
import { expiresAtSeconds } from "./head.ts";
import { newTurnId, requestHash } from "./request.ts";

/** More than clocks differ by. A session created in the future would outlive its lifetime. */
const MAX_AHEAD_MS = 86_400_000;

/** @throws {InvalidSnapshotError} for a session that has expired, or that would outlive its lifetime */
export const checkImportable = (
  createdAt: string,
  { lifetimeSeconds, nowMs }: { readonly lifetimeSeconds: number; readonly nowMs: number },
): void => {
  const refuse = (message: string): never => {
    throw new InvalidSnapshotError([{ path: "created_at", message }]);
  };
  if (expiresAtSeconds(createdAt, lifetimeSeconds) <= Math.floor(nowMs / 1000)) {
    refuse("is so long ago that the session has expired");
  }
  if (parseTimestamp(createdAt, "created_at") > nowMs + MAX_AHEAD_MS) refuse("lies in the future");
};

/** A session's messages as turns, cut before each user message. */
export const turnsOf = ({ messages, createdAt }: Session, newId: () => string): DoneTurn[] =>
  splitIntoTurns(messages).map((of) => importedTurn(of, createdAt, newId()));

const importedTurn = (messages: readonly Message[], createdAt: string, id: string): DoneTurn => {
  const last = messages.at(-1);
  const isAnswered = last?.role === "assistant" && last.toolCalls.length === 0;
  return {
    status: "done",
    turnId: newTurnId(id),
    messages,
    startedAt: createdAt,
    finishedAt: createdAt,
    finish: isAnswered ? "final" : "max_steps",
    usage: NO_USAGE,
  };
};

/** A caller's turn id is recognised in a copy of its history too. */
export const recordsOf = (turns: readonly DoneTurn[]): ReadonlyMap<string, RecentTurn> =>
  new Map(
    turns.flatMap((turn, index): [string, RecentTurn][] => {
      const { turnId, messages, supersedes } = turn;
      if (!isCallersTurnId(turnId)) return [];
      const input = messages.find(({ role }) => role === "user")?.content ?? "";
      const hash = requestHash(supersedes === undefined ? { input } : { input, supersedes });
      const outcome = turn.finish === "interrupted" ? "interrupted" : "done";
      const record = {
        attempt: NO_ATTEMPT,
        version: index + 1,
        requestHash: hash,
        outcome,
      } as const;
      return [[turnKey(turnId), record]];
    }),
  );
