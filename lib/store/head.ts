/** A session as it is stored: its HEAD, and the turns that it holds. */
import type { JsonObject } from "../session/json.ts";
import type { DoneTurn, OpenTurn, TurnStep } from "../session/turn.ts";

export interface SessionKey {
  readonly owner: string;
  readonly sessionId: string;
}

/** A session as stored: its HEAD item. Immutable. */
export interface Head extends SessionKey {
  /** 32 hex digits, new whenever the session id is created: what tells a session from its namesakes. */
  readonly incarnation: string;
  /** 1, and one more with each turn of the history. */
  readonly version: number;
  /** 1, and one more with each change of the metadata. */
  readonly metadataVersion: number;
  /** Claims ever granted. */
  readonly fence: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAtSeconds: number;
  readonly deletedAtSeconds?: number;
  readonly metadata: JsonObject;
  readonly counts: Counts;
  /** The newest turns, oldest first; those before them are in segments. */
  readonly tail: readonly TailTurn[];
  /** The number of the first turn in `tail`; a session's first turn is number 1. */
  readonly tailFrom: number;
  /** The numbers of turns that were superseded, in ascending order. */
  readonly superseded: readonly number[];
  /** By turn key (see `turnKey`): what became of the turns in `tail`, and of those that had no end meanwhile. */
  readonly recent: ReadonlyMap<string, RecentTurn>;
  readonly claim?: ClaimRecord;
  /** The turn being run, or left by a runner that died. */
  readonly open?: StoredOpenTurn;
}

/** Its `input` may be only the beginning of a long one. */
export interface StoredOpenTurn extends OpenTurn {
  /** How many steps are kept. */
  readonly steps: number;
  /** Grows with each checkpoint. */
  readonly revision: number;
}

export interface WholeOpenTurn extends OpenTurn {
  readonly steps: readonly TurnStep[];
}

/** A turn, or where it is kept if it is too large to stand in HEAD. */
export type TailTurn = DoneTurn | TurnInParts;

export interface TurnInParts {
  readonly status: "in_parts";
  readonly turnId: string;
  /** Names the parts, with their number: no other attempt can write them. Of an interrupted turn, its hash. */
  readonly attempt: string;
  readonly count: number;
}

export interface Counts {
  /** Messages that the model is shown: superseded ones don't count. */
  readonly messages: number;
  readonly turns: number;
  /** UTF-8 bytes of the history as JSON, before compression. */
  readonly bytes: number;
}

export interface ClaimRecord {
  /** 32 hex digits, random: one for each time that a runner tries a turn. */
  readonly attempt: string;
  readonly turnId: string;
  readonly untilMs: number;
}

export interface RecentTurn {
  /** The attempt that had it at its end, or `NO_ATTEMPT`. */
  readonly attempt: string;
  /** The version that the turn was decided on, which is its number in the history; of an abandoned turn the one it ended at. */
  readonly version: number;
  readonly requestHash: string;
  readonly outcome: Outcome;
}

/** Of a turn that no attempt of this life of the session made, or that nobody was running. */
export const NO_ATTEMPT = "";

/**
 * "done" and "interrupted" turns are in the history. An "abandoned" one isn't, and its tools may have
 * run: a later try of it must not run them again under other keys.
 */
export type Outcome = "done" | "interrupted" | "abandoned";

/** Refuses the write where the session has another version by now. */
export interface IfMatch {
  readonly version: number;
  readonly metadataVersion?: number;
}

/** Neither deleted nor expired. A session that isn't alive is invisible, whether or not its item is still there. */
export const isAlive = (head: Head, nowMs: number): boolean =>
  head.deletedAtSeconds === undefined && head.expiresAtSeconds > Math.floor(nowMs / 1000);

export const matches = (head: Head, { version, metadataVersion }: IfMatch): boolean =>
  head.version === version &&
  (metadataVersion === undefined || head.metadataVersion === metadataVersion);
