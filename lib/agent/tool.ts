import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type Fault, InvalidInputError } from "../session/invalid.ts";
import {
  isPlainObject,
  type JsonObject,
  type JsonValue,
  kindOf,
  toJsonObject,
  toJsonValue,
} from "../session/json.ts";
import { unlessAborted } from "./abort.ts";
import type { ToolSpec } from "./model.ts";
import { reasonOf } from "./reason.ts";
import { jsonSchemaOf, type Schema, validatorOf } from "./schema.ts";

/**
 * What a repeat of a call would do:
 * - "none": it only reads, and may run again freely;
 * - "idempotent": it may run again with the same `idempotencyKey`;
 * - "once": it never runs again. Where a crash leaves the outcome unknown, the model is told so.
 */
export type Effect = "none" | "idempotent" | "once";

export interface ToolContext {
  /**
   * The same for every try of this very call (session life, turn, step, place, name and arguments),
   * however often the turn is run; never met for another. 64 hex digits.
   */
  readonly idempotencyKey: string;
  readonly sessionId: string;
  readonly turnId: string;
  /**
   * Grows with each runner that gets the session, also where it is created anew within a day after its
   * deletion. A receiver that refuses what comes with a smaller
   * one than it has seen is safe from a runner that was paused, and overtaken, right before its call.
   */
  readonly fence: number;
  /** Aborts when the turn has to end, or the tool's time is over; what the tool does after that is lost. */
  readonly signal: AbortSignal;
  /** The session's. */
  readonly metadata: JsonObject;
}

export interface ToolDefinition<Parameters, Arguments> {
  /** 1 to 64 letters, digits, _ or - (what OpenAI and Bedrock both take). */
  readonly name: string;
  readonly description: string;
  /** A Standard Schema (zod, valibot, …) or plain JSON Schema (draft 2020-12). */
  readonly parameters: Parameters;
  /** JSON Schema for the model, where `parameters` is a Standard Schema that can't tell its own. */
  readonly jsonSchema?: JsonObject;
  /** "once" unless said otherwise. */
  readonly effect?: Effect;
  /** For one call; then its signal aborts, and the model is told. Without it the turn's own end is the bound. */
  readonly timeoutMs?: number;
  /** Of a result, in UTF-8. Without it there is no bound but the storage's. */
  readonly maxResultBytes?: number;
  /** What becomes of a larger one: "cut" (the default) gives the model its beginning, "refuse" an error. */
  readonly largeResult?: "cut" | "refuse";
  /**
   * Returns a string, or a JSON value that the model gets as JSON text. What it throws becomes an
   * error result for the model; it doesn't end the turn.
   */
  readonly run: (args: Arguments, context: ToolContext) => unknown;
}

/** A tool as the agent holds it. */
export interface Tool {
  readonly spec: ToolSpec;
  readonly effect: Effect;
  /** Never rejects: a failure is a result that starts with "error: ". */
  readonly call: (args: JsonValue, context: ToolContext) => Promise<string>;
}

/** @throws {TypeError} for a definition that no provider would take */
export function tool<Parameters extends StandardSchemaV1>(
  definition: ToolDefinition<Parameters, StandardSchemaV1.InferOutput<Parameters>>,
): Tool;
export function tool<Arguments = JsonObject>(
  definition: ToolDefinition<JsonObject, Arguments>,
): Tool;
export function tool(definition: ToolDefinition<Schema, never>): Tool {
  const { name, description, parameters, effect = "once", timeoutMs } = definition;
  if (typeof name !== "string" || !/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new TypeError(
      `tool name ${JSON.stringify(name)} must be 1 to 64 letters, digits, _ or -`,
    );
  }
  if (typeof description !== "string")
    throw new TypeError(`tool ${name}: description must be a string`);
  if (typeof definition.run !== "function")
    throw new TypeError(`tool ${name}: run must be a function`);
  if (!["none", "idempotent", "once"].includes(effect)) {
    throw new TypeError(`tool ${name}: effect must be "none", "idempotent" or "once"`);
  }
  for (const bound of ["timeoutMs", "maxResultBytes"] as const) {
    const value = definition[bound] ?? 1;
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TypeError(`tool ${name}: ${bound} must be a whole number, 1 or more`);
  }
  const spec = { name, description, parameters: specOf(definition) };
  const validate = validatorOf(parameters);
  // The overloads tie what `validate` gives to what `run` takes; here the pair is seen from outside.
  const run = definition.run as (args: unknown, context: ToolContext) => unknown;
  return {
    spec,
    effect,
    call: async (args, context) => {
      try {
        const checked = await validate(args);
        if ("faults" in checked) return `error: invalid arguments: ${faultsIn(args, checked)}`;
        // A check may take its time: a turn that ended meanwhile must have no effect any more.
        context.signal.throwIfAborted();
        const running = (signal: AbortSignal) => run(checked.value, { ...context, signal });
        return bounded(toResult(await inTime(running, context.signal, timeoutMs)), definition);
      } catch (error) {
        return `error: ${reasonOf(error)}`.toWellFormed();
      }
    },
  };
}

/** @throws {TypeError} for what no agent can use */
export const checkTools = (tools: readonly Tool[]): void => {
  const isList: boolean = Array.isArray(tools);
  if (!isList) throw new TypeError("tools must be an array");
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (!tool?.spec || typeof tool.call !== "function") {
      throw new TypeError(`tools[${index}] must be made with tool()`);
    }
    if (names.has(tool.spec.name)) throw new TypeError(`two tools have the name ${tool.spec.name}`);
    names.add(tool.spec.name);
  }
};

/** Models write text where an object belongs: cut off, fenced, encoded twice. */
const faultsIn = (args: JsonValue, { faults }: { readonly faults: readonly Fault[] }): string => {
  if (isPlainObject(args)) return new InvalidInputError(faults).message;
  const found =
    typeof args === "string" ? `text: ${JSON.stringify(startOf(args, 100))}` : kindOf(args);
  return `they must be one JSON object, and were ${found}`;
};

const inTime = async (
  run: (signal: AbortSignal) => unknown,
  turn: AbortSignal,
  timeoutMs: number | undefined,
): Promise<unknown> => {
  if (timeoutMs === undefined) return run(turn);
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([turn, timeout]);
  try {
    return await unlessAborted((async () => run(signal))(), signal);
  } catch (error) {
    if (!timeout.aborted || turn.aborted) throw error;
    throw new Error(`no result within ${timeoutMs} ms; the call may have taken effect`, {
      cause: error,
    });
  }
};

const bounded = (
  result: string,
  { maxResultBytes = Number.POSITIVE_INFINITY, largeResult = "cut" }: Bounds,
): string => {
  const bytes = Buffer.byteLength(result);
  if (bytes <= maxResultBytes) return result;
  if (largeResult === "refuse") {
    return `error: the result is ${bytes} bytes, and at most ${maxResultBytes} are taken: ask for less`;
  }
  return `${startOf(result, maxResultBytes)}\n[cut: these are the first ${maxResultBytes} of ${bytes} bytes]`;
};

type Bounds = Pick<ToolDefinition<unknown, never>, "maxResultBytes" | "largeResult">;

/** As many whole characters as fit. */
const startOf = (text: string, maxBytes: number): string =>
  // A character that is cut decodes to U+FFFD, unless it is held back.
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.from(text).subarray(0, maxBytes), {
    stream: true,
  });

/** A tool that returns nothing has nothing to say: its result is "". */
const toResult = (value: unknown): string => {
  if (value === undefined) return "";
  if (typeof value === "string") return value.toWellFormed();
  return JSON.stringify(toJsonValue(value, "result"));
};

const specOf = ({ name, parameters, jsonSchema }: ToolDefinition<Schema, never>): JsonObject => {
  try {
    return toJsonObject(jsonSchema ?? jsonSchemaOf(parameters));
  } catch (cause) {
    const why = reasonOf(cause);
    throw new TypeError(`tool ${name}: no JSON Schema in parameters or jsonSchema: ${why}`, {
      cause,
    });
  }
};
