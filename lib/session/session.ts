import { childPath, InvalidInputError, InvalidSnapshotError, invalid } from "./invalid.ts";
import { isPlainObject, type JsonObject, kindOf, toJsonObject } from "./json.ts";
import {
  checkMessage,
  isChecked,
  type Message,
  type MessageJson,
  messageFromJson,
  messageToJson,
  wholeMessageToJson,
} from "./message.ts";
import { formatTimestamp, parseTimestamp } from "./timestamp.ts";

/** A session in its portable form: what the Python `minagent` writes and reads. */
export interface Snapshot {
  readonly session_id: string;
  readonly created_at: string;
  readonly metadata: JsonObject;
  readonly messages: readonly MessageJson[];
}

export interface SessionFields {
  readonly sessionId?: string;
  /** ISO 8601 with a zone. */
  readonly createdAt?: string;
  readonly metadata?: JsonObject;
  readonly messages?: readonly Message[];
}

/** A conversation as portable data: it knows of no model, no store, and no turn. */
export class Session {
  readonly sessionId: string;
  /** Kept to the letter; the session's expiry follows from it alone. */
  readonly createdAt: string;
  metadata: JsonObject;
  messages: Message[];

  /**
   * A new session gets a random id and the present time unless they are given. These two defaults
   * are the only chance and clock in this folder; whatever runs turns passes both.
   *
   * @throws {InvalidInputError} with the path of the fault
   */
  constructor(fields: SessionFields = {}) {
    this.sessionId = checkSessionId(fields.sessionId ?? newSessionId(), "sessionId");
    this.createdAt = checkCreatedAt(fields.createdAt ?? formatTimestamp(Date.now()), "createdAt");
    this.metadata = toJsonObject(fields.metadata ?? {}, "metadata");
    this.messages = checkMessages(fields.messages ?? []);
  }

  /** @throws {InvalidInputError} with the path of the fault; the session is then as it was */
  append(message: Message): void {
    this.messages.push(checkMessage(message));
  }

  /**
   * A copy that shares nothing with the session. Written field by field: no other field can leak into it.
   *
   * @param providerData whether messages bring it: no other reader than this class knows it then
   */
  snapshot({ providerData = false }: { readonly providerData?: boolean } = {}): Snapshot {
    const toJson = providerData ? wholeMessageToJson : messageToJson;
    return {
      session_id: this.sessionId,
      created_at: this.createdAt,
      metadata: toJsonObject(this.metadata, "metadata"),
      messages: checkMessages(this.messages).map(toJson),
    };
  }

  /** @throws {InvalidSnapshotError} with the path of the fault */
  static restore(snapshot: unknown): Session {
    try {
      return restore(snapshot);
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      throw new InvalidSnapshotError(error.faults, { cause: error });
    }
  }
}

/** `[A-Za-z0-9_-]`, 1 to 128 of them. */
export const checkSessionId = (value: unknown, path: string): string => {
  if (typeof value !== "string" || !/^[A-Za-z0-9_-]{1,128}$/.test(value)) {
    throw invalid(path, "must be 1 to 128 letters, digits, _ or -");
  }
  return value;
};

/** 12 lower-case hex digits. */
export const newSessionId = (randomBytes: (length: number) => Uint8Array = cryptoBytes): string =>
  Array.from(randomBytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");

const cryptoBytes = (length: number): Uint8Array => crypto.getRandomValues(new Uint8Array(length));

// Paths are put together for those that aren't checked yet: a long session has few of them.
const checkMessages = (messages: readonly Message[]): Message[] =>
  messages.map((message, index) =>
    isChecked(message) ? message : checkMessage(message, childPath("messages", index)),
  );

const checkCreatedAt = (value: unknown, path: string): string => {
  parseTimestamp(value, path);
  return String(value);
};

const restore = (snapshot: unknown): Session => {
  if (!isPlainObject(snapshot)) throw invalid("", `must be an object, not ${kindOf(snapshot)}`);
  for (const key of Object.keys(snapshot)) {
    if (!SNAPSHOT_KEYS.includes(key)) throw invalid(childPath("", key), "isn't a known field");
  }
  const messages = snapshot["messages"];
  if (!Array.isArray(messages))
    throw invalid("messages", `must be an array, not ${kindOf(messages)}`);
  return new Session({
    sessionId: checkSessionId(snapshot["session_id"], "session_id"),
    createdAt: checkCreatedAt(snapshot["created_at"], "created_at"),
    metadata: toJsonObject(snapshot["metadata"], "metadata"),
    messages: messages.map((message: unknown, index) =>
      messageFromJson(message, childPath("messages", index)),
    ),
  });
};

const SNAPSHOT_KEYS: readonly string[] = ["session_id", "created_at", "metadata", "messages"];
