/**
 * Sessions apart from their turns: created, read, exported, imported, deleted. A session that isn't
 * alive is not there, on every path.
 */
import { InvalidSnapshotError } from "../session/invalid.ts";
import { type JsonObject, toJsonObject } from "../session/json.ts";
import { checkSessionId, newSessionId, Session } from "../session/session.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import { type DoneTurn, splitIntoTurns } from "../session/turn.ts";
import { checkOwner } from "../store/keys.ts";
import {
  type Head,
  type IfMatch,
  isAlive,
  matches,
  type Refused,
  type SessionKey,
  type SessionStore,
} from "../store/store.ts";
import { type Clock, cryptoRandom, type RandomBytes, randomId, systemClock } from "./clock.ts";
import { SessionExistsError, SessionNotFoundError, VersionMismatchError } from "./errors.ts";
import { expiresAtSeconds, newHead } from "./head.ts";
import { newTurnId } from "./request.ts";
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
  /** @throws {SessionNotFoundError, VersionMismatchError} */
  delete(key: SessionKey, ifMatch?: IfMatch): Promise<void>;
  /**
   * Stores a snapshot as a new session: its messages become turns, cut before each user message.
   *
   * @throws {SessionExistsError}
   * @throws {InvalidSnapshotError} with the path of the fault; for an expired one too
   */
  import(key: SessionKey, snapshot: unknown): Promise<Head>;
}

export const createSessions = ({
  store,
  lifetimeSeconds = DEFAULT_LIFETIME_SECONDS,
  clock = systemClock,
  randomBytes = cryptoRandom,
}: SessionsOptions): Sessions => {
  const put = async (head: Head): Promise<Head> => {
    let refused: Refused | undefined;
    for (;;) {
      const over = refused?.seen;
      const created = await store.create({ head, nowMs: clock.nowMs(), ...(over ? { over } : {}) });
      if (created.applied || created.seen?.incarnation === head.incarnation) return head;
      if (created.seen && isAlive(created.seen, clock.nowMs()))
        throw new SessionExistsError(head.sessionId);
      refused = created;
    }
  };

  const read = async (key: SessionKey): Promise<Head> => {
    checkKey(key);
    const head = await store.read(key);
    if (!head || !isAlive(head, clock.nowMs())) throw new SessionNotFoundError(key.sessionId);
    return head;
  };

  return {
    read,

    create: async ({ owner, sessionId = newSessionId(randomBytes), metadata = {} }) => {
      const key = checkKey({ owner, sessionId });
      const nowMs = clock.nowMs();
      const head = newHead({
        key,
        incarnation: randomId(randomBytes),
        createdAt: formatTimestamp(nowMs),
        metadata: toJsonObject(metadata, "metadata"),
        lifetimeSeconds,
        nowMs,
      });
      return put(head);
    },

    delete: async (key, ifMatch) => {
      const { incarnation, ...head } = await read(key);
      if (ifMatch && !matches({ incarnation, ...head }, ifMatch))
        throw new VersionMismatchError(head.version);
      const condition = ifMatch ? { ifMatch } : {};
      const deleted = await store.delete({ key, incarnation, nowMs: clock.nowMs(), ...condition });
      // Whoever deleted it, it is gone; only a version that moved keeps it.
      if (deleted.applied || deleted.seen?.incarnation !== incarnation) return;
      if (deleted.seen.deletedAtSeconds === undefined)
        throw new VersionMismatchError(deleted.seen.version);
    },

    import: async (key, snapshot) => {
      checkKey(key);
      const session = Session.restore(snapshot);
      if (session.sessionId !== key.sessionId) {
        throw new InvalidSnapshotError([
          { path: "session_id", message: `isn't ${key.sessionId}, where it is to be stored` },
        ]);
      }
      const { createdAt, metadata } = session;
      const nowMs = clock.nowMs();
      if (expiresAtSeconds(createdAt, lifetimeSeconds) <= Math.floor(nowMs / 1000)) {
        throw new InvalidSnapshotError([
          { path: "created_at", message: "is so long ago that the session has expired" },
        ]);
      }
      const turns = splitIntoTurns(session.messages).map((messages): DoneTurn => {
        const last = messages.at(-1);
        const answered = last?.role === "assistant" && last.toolCalls.length === 0;
        return {
          status: "done",
          turnId: newTurnId(randomId(randomBytes)),
          messages,
          startedAt: createdAt,
          finishedAt: createdAt,
          finish: answered ? "final" : "max_steps",
          usage: { inputTokens: 0, outputTokens: 0 },
        };
      });
      const incarnation = randomId(randomBytes);
      return put(newHead({ key, incarnation, createdAt, metadata, turns, lifetimeSeconds, nowMs }));
    },
  };
};

/** @throws {InvalidInputError} */
const checkKey = ({ owner, sessionId }: SessionKey): SessionKey => ({
  owner: checkOwner(owner, "owner"),
  sessionId: checkSessionId(sessionId, "session_id"),
});
