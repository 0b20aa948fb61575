import { childPath, invalid } from "./invalid.ts";
import {
  isPlainObject,
  type JsonObject,
  type JsonValue,
  kindOf,
  toJsonObject,
  toJsonValue,
} from "./json.ts";

export const ROLES = ["system", "user", "assistant", "tool"] as const;
export type Role = (typeof ROLES)[number];

export interface Message {
  readonly role: Role;
  readonly content: string;
  /** What an assistant message asks for; empty in all others. */
  readonly toolCalls: readonly ToolCall[];
  /** The call that a tool message answers; null in all others. */
  readonly toolCallId: string | null;
  /** In assistant messages alone. */
  readonly providerData?: ProviderData;
}

/**
 * What a model's provider needs back word for word, and a message has no place for, such as
 * reasoning with its signature. It is stored with the turn, and shown to that provider alone.
 */
export interface ProviderData {
  /** See `Model.provider`. */
  readonly provider: string;
  readonly data: JsonObject;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonValue;
}

/** A message in JSON: in snapshots, and in every HTTP answer. Only the storage, and who asks for it, gets `provider_data`. */
export interface MessageJson {
  readonly role: Role;
  readonly content: string;
  readonly tool_calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: JsonValue;
  }[];
  readonly tool_call_id: string | null;
  readonly provider_data?: ProviderData;
}

export const systemMessage = (content: string): Message => plain("system", content);
export const userMessage = (content: string): Message => plain("user", content);
export const assistantMessage = (
  content: string,
  toolCalls: readonly ToolCall[] = [],
  providerData?: ProviderData,
): Message => ({
  ...plain("assistant", content),
  toolCalls,
  ...(providerData ? { providerData } : {}),
});
export const toolMessage = (toolCallId: string, content: string): Message =>
  checked({ role: "tool", content: content.toWellFormed(), toolCalls: NO_CALLS, toolCallId });

const NO_CALLS: readonly ToolCall[] = Object.freeze([]);

const plain = (role: Role, content: string): Message =>
  checked({ role, content: content.toWellFormed(), toolCalls: NO_CALLS, toolCallId: null });

/**
 * A checked message that nobody can change: a copy, unless the value is one already. A session of
 * thousands of messages is checked when it is read, and not again at each turn.
 *
 * @throws {InvalidInputError} with the path of the fault
 */
export const checkMessage = (value: unknown, path = ""): Message => {
  if (isChecked(value)) return value;
  const fields = fieldsOf(value, path, IN_MEMORY_FIELDS);
  return checkFields(fields, path, IN_MEMORY);
};

/** Whether a message was made here, and so is sound and frozen. */
export const isChecked = (value: unknown): value is Message =>
  typeof value === "object" && value !== null && Checked.marks(value);

/** It shares nothing with the message. */
export const messageToJson = (message: Message): MessageJson => ({
  role: message.role,
  content: message.content,
  tool_calls: message.toolCalls.map((call) => ({
    id: call.id,
    name: call.name,
    arguments: toJsonValue(call.arguments),
  })),
  tool_call_id: message.toolCallId,
});

/** With all that it holds. */
export const wholeMessageToJson = (message: Message): MessageJson => {
  const { providerData } = message;
  const portable = messageToJson(message);
  if (!providerData) return portable;
  const { provider, data } = providerData;
  return { ...portable, provider_data: { provider, data: toJsonObject(data) } };
};

/** As another provider may see it. */
export const withoutProviderData = ({ providerData: _data, ...message }: Message): Message =>
  checkMessage(message);

/**
 * Reads a message of a snapshot. `tool_calls` and `tool_call_id` may be left out where they are
 * empty, and so may `provider_data`.
 *
 * @throws {InvalidInputError} with the path of the fault
 */
export const messageFromJson = (value: unknown, path = ""): Message => {
  const fields = fieldsOf(value, path, IN_JSON_FIELDS);
  return checkFields(fields, path, IN_JSON);
};

class Given {
  constructor(message: Message) {
    // biome-ignore lint/correctness/noConstructorReturn: what it returns gets the fields of its heir.
    return message;
  }
}

/**
 * A mark that no copy of a message carries and nobody else can set: a private field, put on a plain
 * object. A WeakSet would tell as much; with thousands of messages a turn it takes ten times as long.
 */
class Checked extends Given {
  readonly #mark = true;

  static marks(value: object): boolean {
    return #mark in value && value.#mark;
  }
}

const checked = (message: Message): Message => {
  if (message.toolCalls.length > 0) freeze(message.toolCalls);
  if (message.providerData) freeze(message.providerData);
  new Checked(message);
  return Object.freeze(message);
};

const freeze = <T>(value: T): T => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const item of Object.values(value)) freeze(item);
  return Object.freeze(value);
};

interface FieldNames {
  readonly toolCalls: string;
  readonly toolCallId: string;
  readonly providerData: string;
}

const IN_MEMORY: FieldNames = {
  toolCalls: "toolCalls",
  toolCallId: "toolCallId",
  providerData: "providerData",
};
const IN_JSON: FieldNames = {
  toolCalls: "tool_calls",
  toolCallId: "tool_call_id",
  providerData: "provider_data",
};

const fieldsWith = ({ toolCalls, toolCallId, providerData }: FieldNames): string[] => [
  "role",
  "content",
  toolCalls,
  toolCallId,
  providerData,
];
const IN_MEMORY_FIELDS = fieldsWith(IN_MEMORY);
const IN_JSON_FIELDS = fieldsWith(IN_JSON);

type Fields = Record<string, unknown>;

// Paths are put together where there is a fault, and not for each sound message.
const checkFields = (fields: Fields, path: string, names: FieldNames): Message => {
  const role = ROLES.find((known) => known === fields["role"]);
  if (!role) throw invalid(childPath(path, "role"), `must be one of ${ROLES.join(", ")}`);
  const toolCalls = checkToolCalls(fields, path, names.toolCalls);
  if (toolCalls.length > 0 && role !== "assistant") {
    throw invalid(childPath(path, names.toolCalls), `must be empty in a ${role} message`);
  }
  const isAnswer = (fields[names.toolCallId] ?? null) !== null;
  if (role === "tool" && !isAnswer) {
    throw invalid(
      childPath(path, names.toolCallId),
      "must name the call that a tool message answers",
    );
  }
  if (role !== "tool" && isAnswer) {
    throw invalid(childPath(path, names.toolCallId), `must be null in a ${role} message`);
  }
  const message = {
    role,
    content: checkString(fields, path, "content"),
    toolCalls,
    toolCallId: isAnswer ? checkString(fields, path, names.toolCallId) : null,
  };
  const given = fields[names.providerData];
  if (given === undefined) return checked(message);
  const at = childPath(path, names.providerData);
  if (role !== "assistant") throw invalid(at, `can't be in a ${role} message`);
  return checked({ ...message, providerData: checkProviderData(given, at) });
};

const checkProviderData = (value: unknown, path: string): ProviderData => {
  const fields = fieldsOf(value, path, ["provider", "data"]);
  return {
    provider: checkString(fields, path, "provider"),
    data: toJsonObject(fields["data"], childPath(path, "data")),
  };
};

const checkToolCalls = (
  message: Fields,
  messagePath: string,
  name: string,
): readonly ToolCall[] => {
  const value = message[name] ?? NO_CALLS;
  if (!Array.isArray(value)) {
    throw invalid(childPath(messagePath, name), `must be an array, not ${kindOf(value)}`);
  }
  if (value.length === 0) return NO_CALLS;
  const path = childPath(messagePath, name);
  return value.map((item: unknown, index) => {
    const at = childPath(path, index);
    const fields = fieldsOf(item, at, ["id", "name", "arguments"]);
    if (!("arguments" in fields)) throw invalid(childPath(at, "arguments"), "is missing");
    return {
      id: checkString(fields, at, "id"),
      name: checkString(fields, at, "name"),
      arguments: toJsonValue(fields["arguments"], childPath(at, "arguments")),
    };
  });
};

const checkString = (fields: Fields, path: string, name: string): string => {
  const value = fields[name];
  if (typeof value !== "string") {
    throw invalid(childPath(path, name), `must be a string, not ${kindOf(value)}`);
  }
  return value.toWellFormed();
};

/** A field that isn't known is refused: taking it would mean to lose it. */
const fieldsOf = (
  value: unknown,
  path: string,
  known: readonly string[],
): Record<string, unknown> => {
  if (!isPlainObject(value)) throw invalid(path, `must be an object, not ${kindOf(value)}`);
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) throw invalid(childPath(path, key), "isn't a known field");
  }
  return value;
};
