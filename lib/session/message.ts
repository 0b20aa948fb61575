import { childPath, invalid } from "./invalid.ts";
import { isPlainObject, type JsonValue, kindOf, toJsonValue } from "./json.ts";

export const ROLES = ["system", "user", "assistant", "tool"] as const;
export type Role = (typeof ROLES)[number];

export interface Message {
  readonly role: Role;
  readonly content: string;
  /** What an assistant message asks for; empty in all others. */
  readonly toolCalls: readonly ToolCall[];
  /** The call that a tool message answers; null in all others. */
  readonly toolCallId: string | null;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonValue;
}

/** A message in JSON: in snapshots, and in every HTTP answer. */
export interface MessageJson {
  readonly role: Role;
  readonly content: string;
  readonly tool_calls: readonly {
    readonly id: string;
    readonly name: string;
    readonly arguments: JsonValue;
  }[];
  readonly tool_call_id: string | null;
}

export const systemMessage = (content: string): Message => plain("system", content);
export const userMessage = (content: string): Message => plain("user", content);
export const assistantMessage = (
  content: string,
  toolCalls: readonly ToolCall[] = [],
): Message => ({
  ...plain("assistant", content),
  toolCalls,
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
  const fields = fieldsOf(value, path, ["role", "content", "toolCalls", "toolCallId"]);
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

/**
 * Reads a message of a snapshot. `tool_calls` and `tool_call_id` may be left out where they are empty.
 *
 * @throws {InvalidInputError} with the path of the fault
 */
export const messageFromJson = (value: unknown, path = ""): Message => {
  const fields = fieldsOf(value, path, ["role", "content", "tool_calls", "tool_call_id"]);
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
}

const IN_MEMORY: FieldNames = { toolCalls: "toolCalls", toolCallId: "toolCallId" };
const IN_JSON: FieldNames = { toolCalls: "tool_calls", toolCallId: "tool_call_id" };

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
  return checked({
    role,
    content: checkString(fields, path, "content"),
    toolCalls,
    toolCallId: isAnswer ? checkString(fields, path, names.toolCallId) : null,
  });
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
