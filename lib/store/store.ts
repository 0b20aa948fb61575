/**
 * The contract of a session store.
 *
 * Every method is one read or one conditional write. A write whose condition doesn't hold is not an
 * error but a value: it changes nothing and brings what stands there (`seen`), read consistently.
 * What that means for the turn is decided in `turns/`, from `seen` and never from belief.
 *
 * Any write may be sent more than once for one call (an answer may get lost on the way), so a refused
 * write may be one's own: the attempt, incarnation or turn key in `seen` tells.
 */
import type { JsonObject } from "../session/json.ts";
import type { DoneTurn, OpenTurn } from "../session/turn.ts";

export interface SessionStore {
  /** The session as it stands, strongly consistent; deleted and expired ones too, while they lie there. */
  read(key: SessionKey): Promise<Head | undefined>;
  /** Writes a new session where none stands, or over the dead one that was seen there. */
  create(write: Create): Promise<WriteResult>;
  /** Grants the session to a runner, if nobody has it, and brings the session as it then stands. */
  claim(write: Claim): Promise<ClaimResult>;
  /** Grants the session to a runner in place of what was seen there: an ended claim, or an abandoned turn. */
  takeOver(write: TakeOver): Promise<ClaimResult>;
  /** Extends a claim that is still held; never shortens it. */
  renew(write: Renew): Promise<WriteResult>;
  /** Appends a turn to the history and ends the claim, if claim and version are still the runner's. */
  commit(write: Commit): Promise<WriteResult>;
  /** Ends a claim without a turn. */
  release(write: Release): Promise<WriteResult>;
  /** Leaves a tombstone, which nothing of this incarnation can write over. */
  delete(write: Delete): Promise<WriteResult>;
}

export type WriteResult = { readonly applied: true } | Refused;
export type ClaimResult = { readonly applied: true; readonly head: Head } | Refused;
export interface Refused {
  readonly applied: false;
  /** What stands there instead; undefined where nothing does. */
  readonly seen: Head | undefined;
}

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
  /** The newest turns, oldest first. */
  readonly tail: readonly DoneTurn[];
  /** The number of the first turn in `tail`; a session's first turn is number 1. */
  readonly tailFrom: number;
  /** By turn key (see `turnKey`): what became of the turns in `tail`. */
  readonly recent: ReadonlyMap<string, RecentTurn>;
  readonly claim?: ClaimRecord;
  /** The turn being run, or left by a runner that died. */
  readonly open?: OpenTurn;
}

export interface Counts {
  /** Messages that the model is shown: superseded ones don't count. */
  readonly messages: number;
  readonly turns: number;
  /** UTF-8 bytes of the history as stored. */
  readonly bytes: number;
}

export interface ClaimRecord {
  /** 32 hex digits, random: one for each time that a runner tries a turn. */
  readonly attempt: string;
  readonly turnId: string;
  readonly untilMs: number;
}

export interface RecentTurn {
  /** The attempt that committed it; "" for imported turns. */
  readonly attempt: string;
  /** The version that the turn was decided on. */
  readonly version: number;
  readonly requestHash: string;
}

/** A session's place in the life of its id: whoever writes with it can't touch a namesake. */
export interface Incarnation {
  readonly key: SessionKey;
  readonly incarnation: string;
}

/** What shows a claim to be the runner's own. */
export interface Held extends Incarnation {
  readonly fence: number;
  readonly attempt: string;
}

export interface Create {
  readonly head: Head;
  /** The deleted or expired session that lies there, as seen. */
  readonly over?: Head;
  readonly nowMs: number;
}

export interface Claim {
  readonly key: SessionKey;
  readonly turnKey: string;
  readonly claim: ClaimRecord;
  readonly open: OpenTurn;
  readonly ifMatch?: IfMatch;
  readonly nowMs: number;
}

export interface TakeOver extends Claim {
  readonly seen: Head;
}

export interface Renew extends Held {
  readonly untilMs: number;
}

export interface Commit extends Held {
  /** The version that the turn was decided on. */
  readonly version: number;
  readonly turnKey: string;
  readonly requestHash: string;
  /** The tail with the new turn at its end. */
  readonly tail: readonly DoneTurn[];
  readonly counts: Counts;
  readonly updatedAt: string;
}

export type Release = Held;

export interface Delete extends Incarnation {
  readonly nowMs: number;
  readonly ifMatch?: IfMatch;
}

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
