import type { JsonObject } from "../session/json.ts";
import { Session } from "../session/session.ts";
import { formatTimestamp, parseTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, visibleMessages } from "../session/turn.ts";
import { encodeTurns } from "../store/codec.ts";
import type { Counts, Head, SessionKey } from "../store/store.ts";

export interface NewHead {
  readonly key: SessionKey;
  readonly incarnation: string;
  readonly createdAt: string;
  readonly metadata?: JsonObject;
  readonly turns?: readonly DoneTurn[];
  readonly lifetimeSeconds: number;
  readonly nowMs: number;
}

/** A session as it is first stored, with no one at work on it. */
export const newHead = (fields: NewHead): Head => {
  const { key, incarnation, createdAt, metadata = {}, turns = [], lifetimeSeconds, nowMs } = fields;
  return {
    ...key,
    incarnation,
    version: turns.length + 1,
    metadataVersion: 1,
    fence: 0,
    createdAt,
    updatedAt: formatTimestamp(nowMs),
    expiresAtSeconds: expiresAtSeconds(createdAt, lifetimeSeconds),
    metadata,
    counts: countsOf(turns),
    tail: turns,
    tailFrom: 1,
    recent: new Map(),
  };
};

/** Whole seconds since the epoch. It follows from `created_at` alone, and so never moves. */
export const expiresAtSeconds = (createdAt: string, lifetimeSeconds: number): number =>
  Math.floor(parseTimestamp(createdAt, "created_at") / 1000) + lifetimeSeconds;

export const countsOf = (turns: readonly DoneTurn[]): Counts => ({
  messages: visibleMessages(turns).length,
  turns: turns.length,
  bytes: Buffer.byteLength(encodeTurns(turns)),
});

/** The session in its portable form. */
export const restoreSession = (head: Head): Session =>
  new Session({
    sessionId: head.sessionId,
    createdAt: head.createdAt,
    metadata: head.metadata,
    messages: visibleMessages(head.tail),
  });
