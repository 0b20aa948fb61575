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
export const toolMessage = (toolCallId: string, content: string): Message => ({
  ...plain("tool", content),
  toolCallId,
});

const plain = (role: Role, content: string): Message => ({
  role,
  content: content.toWellFormed(),
  toolCalls: [],
  toolCallId: null,
});

/**
 * A checked copy of a message.
 *
 * @throws {InvalidInputError} with the path of the fault
 */
export const checkMessage = (value: unknown, path = ""): Message => {
  const fields = fieldsOf(value, path, ["role", "content", "toolCalls", "toolCallId"]);
  return checkFields(fields, path, {
    toolCalls: "toolCalls",
    toolCallId: "toolCallId",
  });
};

export const messageToJson = (message: Message): MessageJson => ({
  role: message.role,
  content: message.content,
  tool_calls: message.toolCalls.map((call) => ({
    id: call.id,
    name: call.name,
    arguments: call.arguments,
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
  return checkFields(fields, path, { toolCalls: "tool_calls", toolCallId: "tool_call_id" });
};

interface FieldNames {
  readonly toolCalls: string;
  readonly toolCallId: string;
}

const checkFields = (fields: Record<string, unknown>, path: string, names: FieldNames): Message => {
  const role = ROLES.find((known) => known === fields["role"]);
  if (!role) throw invalid(childPath(path, "role"), `must be one of ${ROLES.join(", ")}`);
  const toolCalls = checkToolCalls(fields[names.toolCalls] ?? [], childPath(path, names.toolCalls));
  if (toolCalls.length > 0 && role !== "assistant") {
    throw invalid(childPath(path, names.toolCalls), `must be empty in a ${role} message`);
  }
  const toolCallId = fields[names.toolCallId] ?? null;
  const toolCallIdPath = childPath(path, names.toolCallId);
  if (role === "tool" && toolCallId === null) {
    throw invalid(toolCallIdPath, "must name the call that a tool message answers");
  }
  if (role !== "tool" && toolCallId !== null) {
    throw invalid(toolCallIdPath, `must be null in a ${role} message`);
  }
  return {
    role,
    content: checkString(fields["content"], childPath(path, "content")),
    toolCalls,
    toolCallId: toolCallId === null ? null : checkString(toolCallId, toolCallIdPath),
  };
};

const checkToolCalls = (value: unknown, path: string): ToolCall[] => {
  if (!Array.isArray(value)) throw invalid(path, `must be an array, not ${kindOf(value)}`);
  return value.map((item: unknown, index) => {
    const at = childPath(path, index);
    const fields = fieldsOf(item, at, ["id", "name", "arguments"]);
    if (!("arguments" in fields)) throw invalid(childPath(at, "arguments"), "is missing");
    return {
      id: checkString(fields["id"], childPath(at, "id")),
      name: checkString(fields["name"], childPath(at, "name")),
      arguments: toJsonValue(fields["arguments"], childPath(at, "arguments")),
    };
  });
};

const checkString = (value: unknown, path: string): string => {
  if (typeof value !== "string") throw invalid(path, `must be a string, not ${kindOf(value)}`);
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
