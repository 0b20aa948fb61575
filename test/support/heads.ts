/** Values that the tests of stores and turns are made of. */
import { randomBytes } from "node:crypto";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import type { Head, SessionKey, StoredOpenTurn } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Claim, Commit } from "../../lib/store/store.ts";

/**
 * 2100-12-01T12:00:00Z, a whole second: expiry is tested to the second. It lies in the future, since
 * DynamoDB Local deletes what has expired by its own clock.
 */
export const NOW_MS = Date.UTC(2100, 11, 1, 12);
export const NOW_SECONDS = NOW_MS / 1000;

/** What a request hash looks like. */
export const HASH = "0123456789abcdef".repeat(2);

export const hex = (): string => randomBytes(16).toString("hex");

/** Text that no compressor makes shorter than by a quarter. */
export const randomText = (length: number): string =>
  randomBytes(Math.ceil((length * 3) / 4))
    .toString("base64")
    .slice(0, length);

/** A session that no other test has. */
export const newKey = (): SessionKey => ({ owner: "ann", sessionId: hex() });

export const head = (fields: Partial<Head> = {}): Head => ({
  ...newKey(),
  incarnation: hex(),
  version: 1,
  metadataVersion: 1,
  fence: 0,
  createdAt: "2100-12-01T11:00:00.000000+00:00",
  updatedAt: "2100-12-01T11:00:00.000000+00:00",
  expiresAtSeconds: NOW_SECONDS + 3600,
  metadata: {},
  counts: { messages: 0, turns: 0, bytes: 0 },
  tail: [],
  tailFrom: 1,
  superseded: [],
  recent: new Map(),
  ...fields,
});

export const openTurn = (fields: Partial<StoredOpenTurn> = {}): StoredOpenTurn => ({
  status: "open",
  turnId: "turn-1",
  requestHash: HASH,
  input: "hello",
  startedAt: "2100-12-01T12:00:00.000000+00:00",
  steps: 0,
  revision: 0,
  ...fields,
});

export const doneTurn = (fields: Partial<DoneTurn> = {}): DoneTurn => ({
  status: "done",
  turnId: "turn-1",
  messages: [userMessage("hello"), assistantMessage("hi")],
  startedAt: "2100-12-01T12:00:00.000000+00:00",
  finishedAt: "2100-12-01T12:00:01.000000+00:00",
  finish: "final",
  usage: { inputTokens: 3, outputTokens: 5 },
  ...fields,
});

export const claimOn = (key: SessionKey, fields: Partial<Claim> = {}): Claim => {
  const open = fields.open ?? openTurn();
  return {
    key,
    turnKey: turnKey(open.turnId),
    claim: { attempt: hex(), turnId: open.turnId, untilMs: NOW_MS + 30_000 },
    open,
    nowMs: NOW_MS,
    ...fields,
  };
};

/** The commit of a turn that holds `claimed`. */
export const commitOf = (claimed: Head, fields: Partial<Commit> = {}): Commit => {
  const turn = doneTurn({ turnId: claimed.open?.turnId ?? "turn-1" });
  return {
    key: { owner: claimed.owner, sessionId: claimed.sessionId },
    incarnation: claimed.incarnation,
    fence: claimed.fence,
    attempt: claimed.claim?.attempt ?? "",
    head: claimed,
    turnKey: turnKey(turn.turnId),
    requestHash: claimed.open?.requestHash ?? HASH,
    turn,
    nowMs: NOW_MS,
    ...fields,
  };
};
