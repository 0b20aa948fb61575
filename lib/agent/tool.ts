import { Validator } from "@cfworker/json-schema";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { childPath, type Fault, InvalidInputError } from "../session/invalid.ts";
import { type JsonObject, type JsonValue, toJsonObject, toJsonValue } from "../session/json.ts";
import type { ToolSpec } from "./model.ts";
import { reasonOf } from "./reason.ts";

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
   * Grows with each runner that gets the session. A receiver that refuses what comes with a smaller
   * one than it has seen is safe from a runner that was paused, and overtaken, right before its call.
   */
  readonly fence: number;
  /** Aborts when the turn has to end; what the tool does after that is lost. */
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
export function tool(definition: ToolDefinition<JsonObject | StandardSchemaV1, never>): Tool {
  const { name, description, parameters, effect = "once" } = definition;
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
  const spec = { name, description, parameters: jsonSchemaOf(definition) };
  const validate = isStandardSchema(parameters)
    ? standardValidator(parameters)
    : jsonValidator(parameters);
  // The overloads tie what `validate` gives to what `run` takes; here the pair is seen from outside.
  const run = definition.run as (args: unknown, context: ToolContext) => unknown;
  return {
    spec,
    effect,
    call: async (args, context) => {
      try {
        const checked = await validate(args);
        if ("faults" in checked) {
          return `error: invalid arguments: ${new InvalidInputError(checked.faults).message}`;
        }
        // A check may take its time: a turn that ended meanwhile must have no effect any more.
        context.signal.throwIfAborted();
        return toResult(await run(checked.value, context));
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

type Checked = { readonly value: unknown } | { readonly faults: readonly Fault[] };
type Validate = (args: JsonValue) => Checked | Promise<Checked>;

/** A tool that returns nothing has nothing to say: its result is "". */
const toResult = (value: unknown): string => {
  if (value === undefined) return "";
  if (typeof value === "string") return value.toWellFormed();
  return JSON.stringify(toJsonValue(value, "result"));
};

// Some libraries' schemas are functions.
const isStandardSchema = (parameters: unknown): parameters is StandardSchemaV1 =>
  (typeof parameters === "object" || typeof parameters === "function") &&
  parameters !== null &&
  "~standard" in parameters;

const standardValidator =
  (schema: StandardSchemaV1): Validate =>
  async (args) => {
    const result = await schema["~standard"].validate(args);
    if (!result.issues) return { value: result.value };
    return {
      faults: result.issues.map(({ path = [], message }) => ({ path: joinPath(path), message })),
    };
  };

const joinPath = (path: readonly (PropertyKey | StandardSchemaV1.PathSegment)[]): string =>
  path
    .map((segment) => (typeof segment === "object" ? segment.key : segment))
    .reduce<string>((at, key) => childPath(at, typeof key === "number" ? key : String(key)), "");

const jsonValidator = (schema: JsonObject): Validate => {
  // A copy: the validator writes into its schema.
  const validator = new Validator(toJsonObject(schema), "2020-12", false);
  return (args) => {
    const { valid, errors } = validator.validate(args);
    if (valid) return { value: args };
    return {
      faults: errors.map(({ instanceLocation, error }) => ({
        path: joinPath(pointerKeys(instanceLocation)),
        message: error,
      })),
    };
  };
};

/** `#/list/0/a~1b` is the validator's way to write `list[0]["a/b"]`. */
const pointerKeys = (pointer: string): (string | number)[] =>
  pointer
    .split("/")
    .slice(1)
    .map((key) => decodeURI(key).replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key));

const jsonSchemaOf = (
  definition: ToolDefinition<JsonObject | StandardSchemaV1, never>,
): JsonObject => {
  const { name, parameters, jsonSchema } = definition;
  try {
    return toJsonObject(
      jsonSchema ?? (isStandardSchema(parameters) ? ownJsonSchema(parameters) : parameters),
    );
  } catch (cause) {
    throw new TypeError(
      `tool ${name}: no JSON Schema in parameters or jsonSchema: ${reasonOf(cause)}`,
      {
        cause,
      },
    );
  }
};

const ownJsonSchema = (schema: StandardSchemaV1): unknown => {
  const standard: StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props> =
    schema["~standard"];
  if (standard.jsonSchema) return standard.jsonSchema.input({ target: "draft-2020-12" });
  throw new TypeError(`this ${standard.vendor} schema can't tell its own; give it as jsonSchema`);
};
