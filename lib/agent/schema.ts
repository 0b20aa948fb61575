/** What a tool's arguments have to be: by a Standard Schema (zod, valibot, …), or by plain JSON Schema. */
import { Validator } from "@cfworker/json-schema";
import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { childPath, type Fault } from "../session/invalid.ts";
import { type JsonObject, type JsonValue, toJsonObject } from "../session/json.ts";

export type Schema = JsonObject | StandardSchemaV1;

export type Checked = { readonly value: unknown } | { readonly faults: readonly Fault[] };
export type Validate = (args: JsonValue) => Checked | Promise<Checked>;

export const validatorOf = (schema: Schema): Validate =>
  isStandardSchema(schema) ? standardValidator(schema) : jsonValidator(schema);

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

/**
 * For the model.
 *
 * @throws {TypeError} where there is none
 */
export const jsonSchemaOf = (schema: Schema): JsonObject =>
  toJsonObject(isStandardSchema(schema) ? ownJsonSchema(schema) : schema);

const ownJsonSchema = (schema: StandardSchemaV1): unknown => {
  const standard: StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props> =
    schema["~standard"];
  if (standard.jsonSchema) return standard.jsonSchema.input({ target: "draft-2020-12" });
  throw new TypeError(`this ${standard.vendor} schema can't tell its own; give it as jsonSchema`);
};
