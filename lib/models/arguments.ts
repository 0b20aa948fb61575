import { isPlainObject, type JsonObject, type JsonValue, parseJson } from "../session/json.ts";

/**
 * The arguments of a tool call, from the text that a model wrote. What isn't JSON (cut off, fenced, …),
 * or holds a number that would be rounded, stays as the text that it is: the tool refuses it, and
 * tells the model why.
 */
export const argumentsFrom = (text: string): JsonValue => {
  if (text.trim() === "") return {};
  try {
    return parseJson(text);
  } catch {
    return text;
  }
};

/** As providers take them back: nothing but an object. */
export const argumentsFor = (value: JsonValue): JsonObject =>
  isPlainObject(value) ? value : { invalid_arguments: value };
