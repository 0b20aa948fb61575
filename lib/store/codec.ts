/**
 * Turns as JSON text, written and read field by field: a new field in memory never leaks into
 * stored data, and what can't be read is an error, never a guess.
 */
import { childPath, InvalidInputError, invalid } from "../session/invalid.ts";
import { isPlainObject, kindOf } from "../session/json.ts";
import { type Message, messageFromJson } from "../session/message.ts";
import type { DoneTurn, Finish, TurnStep } from "../session/turn.ts";
import { DamagedSessionError } from "./errors.ts";
import type { TailTurn, TurnInParts } from "./head.ts";

/** The JSON of one turn; a list of turns is a JSON array of these. */
export const encodeTurn = (turn: TailTurn): string =>
  JSON.stringify(turn.status === "in_parts" ? partsJson(turn) : turnJson(turn));

/** @throws {InvalidInputError} with the path of the fault */
export const decodeTurns = (text: string): TailTurn[] => {
  const turns = parse(text, "turns");
  if (!Array.isArray(turns)) throw invalid("turns", `must be an array, not ${kindOf(turns)}`);
  return turns.map((turn: unknown, index) => decodeTurn(turn, childPath("turns", index)));
};

/**
 * Runs `read`, and tells what of a session can't be read.
 *
 * @param where "session abc, HEAD"
 * @throws {DamagedSessionError}
 */
export const reading = <T>(where: string, read: () => T): T => {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof InvalidInputError || cause instanceof SyntaxError)) throw cause;
    throw new DamagedSessionError(`${where}: ${cause.message}`, { cause });
  }
};

/** The JSON of a step without its results, which come later. */
export const encodeStep = ({ message, usage }: TurnStep): string =>
  JSON.stringify({ ...storedMessage(message), usage: [usage.inputTokens, usage.outputTokens] });

/** @throws {InvalidInputError} with the path of the fault */
export const decodeStep = (text: string, path: string): Omit<TurnStep, "results"> => {
  const step = parse(text, path);
  if (!isPlainObject(step)) throw invalid(path, `must be an object, not ${kindOf(step)}`);
  const { usage, ...message } = step;
  return {
    message: messageFromJson(message, path),
    usage: decodeUsage(usage, childPath(path, "usage")),
  };
};

/** @throws {InvalidInputError} with the path of the fault */
export const decodeResults = (text: string, path: string): TurnStep["results"] => {
  const results = parse(text, path);
  if (!Array.isArray(results)) throw invalid(path, `must be an array, not ${kindOf(results)}`);
  return results.map((result: unknown, index) => {
    if (result !== null && typeof result !== "string") {
      throw invalid(childPath(path, index), `must be text or null, not ${kindOf(result)}`);
    }
    return result;
  });
};

const parse = (text: string, path: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidInputError([{ path, message: "isn't valid JSON" }], { cause });
  }
};

const turnJson = (turn: DoneTurn) => ({
  turn_id: turn.turnId,
  started_at: turn.startedAt,
  finished_at: turn.finishedAt,
  finish: turn.finish,
  usage: [turn.usage.inputTokens, turn.usage.outputTokens],
  ...(turn.supersedes === undefined ? {} : { supersedes: turn.supersedes }),
  messages: turn.messages.map(storedMessage),
});

const partsJson = ({ turnId, attempt, count }: TurnInParts) => ({
  turn_id: turnId,
  parts: [attempt, count],
});

// Empty fields are left out: most messages have no calls.
const storedMessage = ({ role, content, toolCalls, toolCallId, providerData }: Message) => ({
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
  ...(providerData ? { provider_data: providerData } : {}),
});

const decodeTurn = (turn: unknown, path: string): TailTurn => {
  if (!isPlainObject(turn)) throw invalid(path, `must be an object, not ${kindOf(turn)}`);
  const text = (field: string): string => {
    const value = turn[field];
    if (typeof value !== "string")
      throw invalid(childPath(path, field), `must be text, not ${kindOf(value)}`);
    return value;
  };
  if (turn["parts"] !== undefined) {
    const [attempt, count] = pairOf(turn["parts"]);
    if (typeof attempt !== "string" || typeof count !== "number") {
      throw invalid(childPath(path, "parts"), "must be an attempt and a number");
    }
    return { status: "in_parts", turnId: text("turn_id"), attempt, count };
  }
  const messages = turn["messages"];
  const messagesPath = childPath(path, "messages");
  if (!Array.isArray(messages)) throw invalid(messagesPath, "must be an array");
  return {
    status: "done",
    turnId: text("turn_id"),
    startedAt: text("started_at"),
    finishedAt: text("finished_at"),
    finish: decodeFinish(turn["finish"], childPath(path, "finish")),
    usage: decodeUsage(turn["usage"], childPath(path, "usage")),
    ...(turn["supersedes"] === undefined ? {} : { supersedes: text("supersedes") }),
    messages: messages.map((message: unknown, index) =>
      messageFromJson(message, childPath(messagesPath, index)),
    ),
  };
};

const decodeFinish = (value: unknown, path: string): Finish => {
  const finish = FINISHES.find((known) => known === value);
  if (!finish) throw invalid(path, `must be one of ${FINISHES.join(", ")}`);
  return finish;
};

const FINISHES: readonly Finish[] = ["final", "max_steps", "interrupted"];

const decodeUsage = (value: unknown, path: string): DoneTurn["usage"] => {
  const [inputTokens, outputTokens] = pairOf(value);
  if (typeof inputTokens !== "number" || typeof outputTokens !== "number") {
    throw invalid(path, "must be two numbers");
  }
  return { inputTokens, outputTokens };
};

const pairOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
