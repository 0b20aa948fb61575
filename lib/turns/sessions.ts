/**
 * Sessions apart from their turns: created, read, listed, changed, copied, deleted. A session that
 * isn't alive is not there, on every path.
 */
import { InvalidSnapshotError, invalid } from "../session/invalid.ts";
import { type JsonObject, toJsonObject } from "../session/json.ts";
import { mergePatch } from "../session/merge.ts";
import { checkSessionId, newSessionId, Session } from "../session/session.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, visibleMessages } from "../session/turn.ts";
import { DamagedSessionError, StoreUnavailableError } from "../store/errors.ts";
import { type Head, type IfMatch, isAlive, matches, type SessionKey } from "../store/head.ts";
import { checkOwner } from "../store/keys.ts";
import type { SessionStore } from "../store/store.ts";
import { type Clock, cryptoRandom, type RandomBytes, randomId, systemClock } from "./clock.ts";
import { checkImportable, recordsOf, turnsOf } from "./copies.ts";
import { SessionExistsError, SessionNotFoundError, VersionMismatchError } from "./errors.ts";
import { type FoundTurn, findTurn } from "./find.ts";
import { checkMetadataSize, fenceAfter, newHead } from "./head.ts";
import { readTurns, supersededIn, wholeHistory } from "./history.ts";
import { pageOfSessions, type SessionPageRequest } from "./list.ts";
import {
  type Page,
  type PagedMessage,
  type PageRequest,
  pageOfMessages,
  pageOfTurns,
  type TurnJson,
} from "./pages.ts";
import { DEFAULT_LIFETIME_SECONDS } from "./turns.ts";

export interface SessionsOptions {
  readonly store: SessionStore;
  readonly lifetimeSeconds?: number;
  readonly clock?: Clock;
  readonly randomBytes?: RandomBytes;
}

export interface Sessions {
  /** @throws {SessionExistsError} */
  create(fields: { owner: string; sessionId?: string; metadata?: JsonObject }): Promise<Head>;
  /** @throws {SessionNotFoundError} */
  read(key: SessionKey): Promise<Head>;
  /** The owner's, newest first. */
  list(owner: string, request?: SessionPageRequest): Promise<Page<Head>>;
  messages(head: Head, request?: PageRequest): Promise<Page<PagedMessage>>;
  turns(head: Head, request?: PageRequest): Promise<Page<TurnJson>>;
  /** @throws {SessionNotFoundError, TurnNotFoundError} */
  turn(key: SessionKey, turnId: string): Promise<FoundTurn>;
  /** The whole session in its portable form. */
  export(head: Head): Promise<Session>;
  /**
   * Merges a JSON merge patch (RFC 7396) into the metadata. A running turn isn't disturbed.
   *
   * @throws {SessionNotFoundError, VersionMismatchError, MetadataTooLargeError}
   */
  patchMetadata(key: SessionKey, patch: JsonObject, ifMatch?: IfMatch): Promise<Head>;
  /** @throws {SessionNotFoundError, VersionMismatchError} */
  delete(key: SessionKey, ifMatch?: IfMatch): Promise<void>;
  /**
   * Stores a snapshot as a new session: its messages become turns, cut before each user message.
   *
   * @throws {SessionExistsError}
   * @throws {InvalidSnapshotError} with the path of the fault; for an expired one too
   */
  import(key: SessionKey, snapshot: unknown): Promise<Head>;
  /**
   * A new session with the history of another, up to the turn `atTurn` or all of it, and with a life
   * of its own.
   *
   * @throws {SessionNotFoundError, SessionExistsError}
   */
  fork(key: SessionKey, fields?: { sessionId?: string; atTurn?: string }): Promise<Head>;
}

export const createSessions = ({
  store,
  lifetimeSeconds = DEFAULT_LIFETIME_SECONDS,
  clock = systemClock,
  randomBytes = cryptoRandom,
}: SessionsOptions): Sessions => {
  /** Puts a HEAD where none stands, or a dead one. */
  const put = async (head: Head): Promise<Head> => {
    let over: Head | undefined;
    for (;;) {
      const next = { ...head, fence: fenceAfter(over) };
      const dead = over ? { over } : {};
      const created = await store.create({ head: next, nowMs: clock.nowMs(), ...dead });
      if (created.applied || created.seen?.incarnation === head.incarnation) {
        if (over) await purge(over, over.incarnation);
        return next;
      }
      if (created.seen && isAlive(created.seen, clock.nowMs()))
        throw new SessionExistsError(head.sessionId);
      over = created.seen;
    }
  };

  /** History first, HEAD last: before it stands, nothing of the session can be seen. */
  const putWithHistory = async (head: Head, turns: readonly DoneTurn[]): Promise<Head> => {
    const there = await store.read(head);
    if (there && isAlive(there, clock.nowMs())) throw new SessionExistsError(head.sessionId);
    return put(await store.prepare(head, { turns, records: recordsOf(turns) }));
  };

  const read = async (key: SessionKey): Promise<Head> => {
    checkKey(key);
    const head = await store.read(key);
    if (!head || !isAlive(head, clock.nowMs())) throw new SessionNotFoundError(key.sessionId);
    return head;
  };

  const historyOf = (head: Head): Promise<DoneTurn[]> =>
    readTurns(store, head, { range: wholeHistory(head), nowMs: clock.nowMs() });

  /** A life of its own, from now on. */
  const headOf = (fields: { key: SessionKey; createdAt?: string; metadata: JsonObject }): Head => {
    const nowMs = clock.nowMs();
    return newHead({
      createdAt: formatTimestamp(nowMs),
      ...fields,
      incarnation: randomId(randomBytes),
      lifetimeSeconds,
      nowMs,
    });
  };

  return {
    read,

    create: async ({ owner, sessionId = newSessionId(randomBytes), metadata = {} }) =>
      put(
        headOf({
          key: checkKey({ owner, sessionId }),
          metadata: toJsonObject(metadata, "metadata"),
        }),
      ),

    list: async (owner, request) =>
      pageOfSessions(store, checkOwner(owner, "owner"), { ...request, nowMs: clock.nowMs() }),

    messages: (head, request) => pageOfMessages({ store, head, nowMs: clock.nowMs() }, request),
    turns: (head, request) => pageOfTurns({ store, head, nowMs: clock.nowMs() }, request),
    turn: (key, turnId) => findTurn({ store, read: () => read(key), nowMs: clock.nowMs }, turnId),

    export: async (head) => {
      const messages = visibleMessages(await historyOf(head));
      const { sessionId, createdAt, metadata } = head;
      return new Session({ sessionId, createdAt, metadata, messages });
    },

    patchMetadata: async (key, patch, ifMatch) => {
      let seen: Head | undefined = await read(key);
      for (;;) {
        if (!seen || !isAlive(seen, clock.nowMs())) throw new SessionNotFoundError(key.sessionId);
        if (ifMatch && !matches(seen, ifMatch)) throw new VersionMismatchError(seen);
        const { incarnation, metadataVersion } = seen;
        const metadata = checkMetadataSize(mergePatch(seen.metadata, patch));
        const nowMs = clock.nowMs();
        const updatedAt = formatTimestamp(nowMs);
        const change = {
          key,
          incarnation,
          metadata,
          seenMetadataVersion: metadataVersion,
          updatedAt,
          nowMs,
        };
        const changed = await store.setMetadata({ ...change, ...(ifMatch ? { ifMatch } : {}) });
        if (changed.applied)
          return { ...seen, metadata, metadataVersion: metadataVersion + 1, updatedAt };
        seen = changed.seen;
        // One's own write, whose answer got lost; else another change got ahead, and what it left is merged into.
        const isDone =
          seen?.incarnation === incarnation && seen.metadataVersion === metadataVersion + 1;
        if (seen && isDone && JSON.stringify(seen.metadata) === JSON.stringify(metadata))
          return seen;
      }
    },

    delete: async (key, ifMatch) => {
      const head = await read(key);
      const { incarnation } = head;
      if (ifMatch && !matches(head, ifMatch)) throw new VersionMismatchError(head);
      const condition = ifMatch ? { ifMatch } : {};
      const deleted = await store.delete({ key, incarnation, nowMs: clock.nowMs(), ...condition });
      // Whoever deleted it, it is gone; only a version that moved keeps it.
      const isThere = !deleted.applied && deleted.seen?.incarnation === incarnation;
      if (isThere && deleted.seen.deletedAtSeconds === undefined)
        throw new VersionMismatchError(deleted.seen);
      await purge(key, incarnation);
    },

    import: async (key, snapshot) => {
      checkKey(key);
      const session = Session.restore(snapshot);
      if (session.sessionId !== key.sessionId) {
        throw new InvalidSnapshotError([
          { path: "session_id", message: `isn't ${key.sessionId}, where it is to be stored` },
        ]);
      }
      const { createdAt, metadata, messages } = session;
      checkImportable(createdAt, { lifetimeSeconds, nowMs: clock.nowMs() });
      const turns = turnsOf(session, () => randomId(randomBytes));
      const head = headOf({ key, createdAt, metadata });
      return putWithHistory(
        { ...head, counts: { ...head.counts, messages: messages.length } },
        turns,
      );
    },

    fork: async (key, { sessionId = newSessionId(randomBytes), atTurn } = {}) => {
      const source = await read(key);
      const all = await historyOf(source);
      const end =
        atTurn === undefined ? all.length : all.findIndex(({ turnId }) => turnId === atTurn) + 1;
      if (atTurn !== undefined && end === 0)
        throw invalid("at_turn", `there is no turn ${atTurn} in this session`);
      const turns = all.slice(0, end);
      const head = headOf({
        key: checkKey({ owner: key.owner, sessionId }),
        metadata: source.metadata,
      });
      const counts = { ...head.counts, messages: visibleMessages(turns).length };
      return putWithHistory({ ...head, counts, superseded: supersededIn(turns) }, turns);
    },
  };

  /** As far as it goes: cleanup finds what is left. */
  async function purge(key: SessionKey, incarnation: string): Promise<void> {
    try {
      await store.purge({ key, incarnation });
    } catch (error) {
      if (!(error instanceof StoreUnavailableError || error instanceof DamagedSessionError))
        throw error;
    }
  }
};

/** @throws {InvalidInputError} */
const checkKey = ({ owner, sessionId }: SessionKey): SessionKey => ({
  owner: checkOwner(owner, "owner"),
  sessionId: checkSessionId(sessionId, "session_id"),
});
