/**
 * The contract of a session store.
 *
 * A session is a HEAD, which holds the newest turns, and segments with the older ones, which never
 * change. Every write of a HEAD is one conditional write. A write whose condition doesn't hold is not an
 * error but a value: it changes nothing and brings what stands there (`seen`), read consistently.
 * What that means for the turn is decided in `turns/`, from `seen` and never from belief.
 *
 * Any write may be sent more than once for one call (an answer may get lost on the way), so a refused
 * write may be one's own: the attempt, incarnation or turn key in `seen` tells.
 */
import type { JsonObject } from "../session/json.ts";
import type { DoneTurn, OpenTurn, TurnStep } from "../session/turn.ts";
import type { ClaimRecord, Head, IfMatch, RecentTurn, SessionKey, WholeOpenTurn } from "./head.ts";

export interface SessionStore {
  /** The session as it stands, strongly consistent; deleted and expired ones too, while they lie there. */
  read(key: SessionKey): Promise<Head | undefined>;
  /** Writes a new session where none stands, or over the dead one that was seen there. */
  create(write: Create): Promise<WriteResult>;
  /** Grants the session to a runner, if nobody has it, and brings the session as it then stands. */
  claim(write: Claim): Promise<ClaimResult>;
  /** Grants the session to a runner in place of what was seen there: a claim, or a turn that nobody runs. */
  takeOver(write: TakeOver): Promise<ClaimResult>;
  /** Ends the turn that was seen there, and grants the session to nobody. */
  displace(write: Displace): Promise<WriteResult>;
  /** Extends a claim that is still held; never shortens it. */
  renew(write: Renew): Promise<WriteResult>;
  /** Appends a turn to the history and ends the claim, if claim and version are still the runner's and the session hasn't expired. */
  commit(write: Commit): Promise<WriteResult>;
  /** Keeps what the turn has done, once for each revision, and extends the claim; never shortens it. */
  checkpoint(write: Checkpoint): Promise<WriteResult>;
  /** Ends a claim without a turn. */
  release(write: Release): Promise<WriteResult>;
  /** Leaves a tombstone, which nothing of this incarnation can write over. */
  delete(write: Delete): Promise<WriteResult>;
  /** Replaces the metadata, if they are still those that were seen. A turn that runs meanwhile isn't disturbed. */
  setMetadata(write: SetMetadata): Promise<WriteResult>;

  /** Keeps the whole input of the open turn, where HEAD has no room for it. */
  saveInput(head: Head, input: string): Promise<void>;
  /** The open turn with all that is kept of it; undefined where another has its place by now, or it has gone on. */
  openTurn(head: Head): Promise<WholeOpenTurn | undefined>;
  /**
   * Turns of the history, oldest first; `from` counts and `to` doesn't.
   *
   * @throws {DamagedSessionError} where one is missing or can't be read
   */
  turns(head: Head, range: TurnRange): Promise<DoneTurn[]>;
  /**
   * Copies the turns in HEAD to where older turns lie. Only committed turns go there, so that it may
   * be done at any time, by several at once, and in vain; what counts is the commit that then drops
   * them from HEAD.
   */
  seal(head: Head): Promise<Sealed>;
  /** The newest summary of the session's older turns; one that was just saved may be missing. */
  summary(head: Head): Promise<Summary | undefined>;
  /** The first one of those turns stands. */
  saveSummary(head: Head, summary: Summary): Promise<void>;
  /** What became of a turn whose record left HEAD. Only turn ids that callers gave are kept. */
  findTurn(place: Incarnation, turnKey: string): Promise<RecentTurn | undefined>;
  /** Writes the history of a session that is to be created, and gives its HEAD for `create`. */
  prepare(head: Head, history: Prepared): Promise<Head>;
  /** The owner's sessions, newest first. One that was just created may not be among them yet. */
  list(request: ListRequest): Promise<ListPage>;
  /** Removes what a deleted session left behind but its tombstone. */
  purge(place: Incarnation): Promise<void>;
}

export type WriteResult = { readonly applied: true } | Refused;
export type ClaimResult = { readonly applied: true; readonly head: Head } | Refused;
export interface Refused {
  readonly applied: false;
  /** What stands there instead; undefined where nothing does. */
  readonly seen: Head | undefined;
}

export interface TurnRange {
  readonly from: number;
  readonly to: number;
}

export interface Sealed {
  /** The number of the first turn that isn't sealed. */
  readonly to: number;
}

/** Stands beside the history, and for a part of it where that isn't shown. */
export interface Summary {
  /** The number of the first turn that it doesn't cover. */
  readonly to: number;
  readonly text: string;
}

export interface Prepared {
  readonly turns: readonly DoneTurn[];
  /** By turn key, of those whose ids callers gave. */
  readonly records: ReadonlyMap<string, RecentTurn>;
}

export interface ListRequest {
  readonly owner: string;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string;
  readonly nowMs: number;
}

export interface ListPage {
  readonly heads: readonly Head[];
  readonly next?: string;
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
  /** Of the session that is meant, where it was seen before: not granted on another of its name. */
  readonly incarnation?: string;
  readonly ifMatch?: IfMatch;
  readonly nowMs: number;
}

export interface TakeOver extends Claim {
  readonly seen: Head;
  readonly displaced?: Displaced;
}

export interface Displace extends Incarnation {
  readonly seen: Head;
  readonly displaced?: Displaced;
  readonly nowMs: number;
}

/** What is kept of the turn that loses its place. */
export interface Displaced {
  readonly turnKey: string;
  readonly record: RecentTurn;
  /** Goes into the history: the record says so too. */
  readonly interrupted?: DoneTurn;
  /** What of the history before it leaves HEAD. */
  readonly sealed?: Sealed;
}

export interface Checkpoint extends Held {
  readonly head: Head;
  /** Of the open turn, as the runner left it. */
  readonly revision: number;
  readonly kept: Kept;
  readonly untilMs: number;
}

export type Kept =
  /** Steps behind those that are kept already. */
  | { readonly steps: readonly TurnStep[] }
  /** What the tools of a step that is kept returned. */
  | { readonly step: number; readonly results: TurnStep["results"] };

export interface Renew extends Held {
  readonly untilMs: number;
}

export interface Commit extends Held {
  /** The session that the turn was decided on. */
  readonly head: Head;
  readonly turnKey: string;
  readonly requestHash: string;
  readonly turn: DoneTurn;
  /** The number of the turn whose place this one takes, and how many messages of it no longer count. */
  readonly supersedes?: { readonly number: number; readonly messages: number };
  readonly sealed?: Sealed;
  readonly nowMs: number;
}

export interface Release extends Held {
  /** Leaves the turn open, so that another try of it goes on from its last checkpoint. */
  readonly keepOpen: boolean;
}

export interface Delete extends Incarnation {
  readonly nowMs: number;
  readonly ifMatch?: IfMatch;
}

export interface SetMetadata extends Incarnation {
  readonly metadata: JsonObject;
  readonly seenMetadataVersion: number;
  readonly updatedAt: string;
  readonly nowMs: number;
  readonly ifMatch?: IfMatch;
}

/** A tombstone's life: longer than any request of the deleted session can be on its way. */
export const TOMBSTONE_SECONDS = 86_400;
