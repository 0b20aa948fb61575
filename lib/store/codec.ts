/**
 * Turns as JSON text, written and read field by field: a new field in memory never leaks into
 * stored data, and what can't be read is an error, never a guess.
 */
import { childPath, InvalidInputError, invalid } from "../session/invalid.ts";
import { isPlainObject, kindOf } from "../session/json.ts";
import { type Message, messageFromJson } from "../session/message.ts";
import type { DoneTurn, Finish } from "../session/turn.ts";
import { DamagedSessionError } from "./errors.ts";

export const encodeTurns = (turns: readonly DoneTurn[]): string =>
  JSON.stringify(
    turns.map((turn) => ({
      turn_id: turn.turnId,
      started_at: turn.startedAt,
      finished_at: turn.finishedAt,
      finish: turn.finish,
      usage: [turn.usage.inputTokens, turn.usage.outputTokens],
      ...(turn.supersedes === undefined ? {} : { supersedes: turn.supersedes }),
      messages: turn.messages.map(storedMessage),
    })),
  );

/**
 * @param where what is being read, for the error: "session abc, HEAD"
 * @throws {DamagedSessionError} with the path of the fault
 */
export const decodeTurns = (text: unknown, where: string): DoneTurn[] => {
  try {
    if (typeof text !== "string") throw invalid("", `must be text, not ${kindOf(text)}`);
    const turns: unknown = JSON.parse(text);
    if (!Array.isArray(turns)) throw invalid("", `must be an array, not ${kindOf(turns)}`);
    return turns.map((turn: unknown, index) => decodeTurn(turn, childPath("turns", index)));
  } catch (cause) {
    if (!(cause instanceof InvalidInputError || cause instanceof SyntaxError)) throw cause;
    throw new DamagedSessionError(`${where}: ${cause.message}`, { cause });
  }
};

// Empty fields are left out: most messages have no calls.
const storedMessage = ({ role, content, toolCalls, toolCallId }: Message) => ({
  role,
  content,
  ...(toolCalls.length === 0
    ? {}
    : {
        tool_calls: toolCalls.map(({ id, name, arguments: args }) => ({
          id,
          name,
          arguments: args,
        })),
      }),
  ...(toolCallId === null ? {} : { tool_call_id: toolCallId }),
});

const decodeTurn = (turn: unknown, path: string): DoneTurn => {
  if (!isPlainObject(turn)) throw invalid(path, `must be an object, not ${kindOf(turn)}`);
  const text = (field: string): string => {
    const value = turn[field];
    if (typeof value !== "string")
      throw invalid(childPath(path, field), `must be text, not ${kindOf(value)}`);
    return value;
  };
  const messages = turn["messages"];
  if (!Array.isArray(messages)) throw invalid(childPath(path, "messages"), "must be an array");
  return {
    status: "done",
    turnId: text("turn_id"),
    startedAt: text("started_at"),
    finishedAt: text("finished_at"),
    finish: decodeFinish(turn["finish"], childPath(path, "finish")),
    usage: decodeUsage(turn["usage"], childPath(path, "usage")),
    ...(turn["supersedes"] === undefined ? {} : { supersedes: text("supersedes") }),
    messages: messages.map((message: unknown, index) =>
      messageFromJson(message, childPath(childPath(path, "messages"), index)),
    ),
  };
};

const decodeFinish = (value: unknown, path: string): Finish => {
  if (value !== "final" && value !== "max_steps") throw invalid(path, "must be final or max_steps");
  return value;
};

const decodeUsage = (value: unknown, path: string): DoneTurn["usage"] => {
  const numbers: unknown[] = Array.isArray(value) ? value : [];
  const [inputTokens, outputTokens] = numbers;
  if (typeof inputTokens !== "number" || typeof outputTokens !== "number") {
    throw invalid(path, "must be two numbers");
  }
  return { inputTokens, outputTokens };
};
