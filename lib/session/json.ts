/**
 * JSON without silent change. A value is taken as it is or refused with its path: what JSON would
 * drop, turn into `{}`, or round is an error here.
 */
import { childPath, InvalidInputError, invalid } from "./invalid.ts";

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [key: string]: JsonValue };

/** Deeper values are refused: every JSON writer recurses, and some of them end at a thousand levels. */
export const MAX_JSON_DEPTH = 256;

/**
 * A deep copy of `value` as plain JSON data.
 *
 * Strings are made well-formed; -0 becomes 0, which equals it and which JSON can hold; a property
 * that is `undefined` counts as absent. Everything else that JSON can't hold is refused.
 *
 * @throws {InvalidInputError} with the path of the first fault
 */
export const toJsonValue = (value: unknown, path = ""): JsonValue => copy(value, path, 0);

/** As `toJsonValue`, for a value that has to be an object. */
export const toJsonObject = (value: unknown, path = ""): JsonObject => {
  if (!isPlainObject(value)) throw invalid(path, `must be an object, not ${kindOf(value)}`);
  return copyObject(value, path, 0);
};

/**
 * Parses JSON text from outside. A number that JavaScript can't hold (9007199254740993, 1e999) is
 * refused with its path, not rounded.
 *
 * @throws {InvalidInputError} for text that isn't JSON, with the parser's error as `cause`
 */
export const parseJson = (text: string): JsonValue => {
  let parsed: unknown;
  try {
    parsed = SUSPECT_NUMBER.test(text) ? JSON.parse(text, markInexact) : JSON.parse(text);
  } catch (cause) {
    // Reading number by number recurses; reading alone doesn't.
    const message = cause instanceof RangeError ? TOO_DEEP : "isn't valid JSON";
    throw new InvalidInputError([{ path: "", message }], { cause });
  }
  return copy(parsed, "", -SNAPSHOT_DEPTH);
};

/** What a snapshot puts around a call's arguments: without room for it, text could be written that can't be read. */
const SNAPSHOT_DEPTH = 5;

const TOO_DEEP = `is nested deeper than ${MAX_JSON_DEPTH} levels`;

/** "a string", "null", "a Date": what an error says that it found. */
export const kindOf = (value: unknown): string => {
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return "an array";
  if (typeof value !== "object") return `a ${typeof value}`;
  if (isPlainObject(value)) return "an object";
  const name = (Object.getPrototypeOf(value) as { constructor?: { name?: unknown } }).constructor
    ?.name;
  return `an instance of ${typeof name === "string" && name ? name : "a class"}`;
};

/** An object as JSON has them; instances of classes are not. */
export const isPlainObject = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
};

const copy = (value: unknown, path: string, depth: number): JsonValue => {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw invalid(path, `${value} can't be written as JSON`);
      return value === 0 ? 0 : value;
    case "object":
      if (value === null) return null;
      if (value instanceof InexactNumber) {
        throw invalid(
          path,
          `${value.shown} can't be held exactly as a number: send it as a string`,
        );
      }
      if (depth >= MAX_JSON_DEPTH) throw invalid(path, TOO_DEEP);
      if (Array.isArray(value)) return copyArray(value, path, depth);
      if (isPlainObject(value)) return copyObject(value, path, depth);
      break;
    default:
  }
  throw invalid(path, `${kindOf(value)} can't be written as JSON`);
};

// Array.from visits holes too, so that a sparse array is refused rather than shortened.
const copyArray = (values: readonly unknown[], path: string, depth: number): JsonValue[] => {
  if (Object.keys(values).length > values.length)
    throw invalid(path, "has properties besides its items");
  return Array.from(values, (value, index) => copy(value, childPath(path, index), depth + 1));
};

// Object.fromEntries defines own properties: `__proto__` stays data, and no prototype is touched.
const copyObject = (value: Record<string, unknown>, path: string, depth: number): JsonObject => {
  if (Object.getOwnPropertySymbols(value).length > 0) throw invalid(path, "has a symbol as a key");
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => {
        if (!key.isWellFormed()) throw invalid(path, "has a key with a lone surrogate");
        return [key, copy(item, childPath(path, key), depth + 1)];
      }),
  );
};

class InexactNumber {
  readonly shown: string;
  constructor(source: string) {
    this.shown = source.length > 40 ? `${source.slice(0, 40)}…` : source;
  }
}

/**
 * Any decimal of at most 15 significant digits and a plain exponent survives a double (DBL_DIG in
 * IEEE 754 terms), so only longer ones and those with an exponent need a look at their letters.
 */
const SUSPECT_NUMBER = /[\d.]{16}|\d[eE]/;

/**
 * Every number that a double holds can be written shorter than this, without an exponent too. Comparing
 * the letters of longer ones takes time that grows faster than they do: a few KB would stop the process.
 */
const MAX_NUMBER_LENGTH = 400;

const markInexact = (_key: string, value: unknown, context?: { source?: string }): unknown => {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const { source } = context;
  return isExact(source, value) ? value : new InexactNumber(source);
};

/**
 * Whether a number comes out as it went in: its letters do, or, from 10^21 on, where JavaScript
 * writes whole numbers with an exponent, its very value. Python's 10**22 equals 1e+22, and 10**23
 * doesn't equal 1e+23.
 */
const isExact = (source: string, value: number): boolean =>
  source.length <= MAX_NUMBER_LENGTH &&
  decimal(source) === decimal(String(value)) &&
  (!/^-?\d+$/.test(source) || Math.abs(value) < 1e21 || BigInt(source) === BigInt(value));

/** One spelling for each decimal number but for its sign: digits without outer zeros, and the power of ten behind them. */
const decimal = (literal: string): string => {
  const [, whole = "", fraction = "", exponent = "0"] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return whole === "" ? "not a number" : "0";
  const trimmed = digits.replace(/0+$/, "");
  return `${trimmed}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - trimmed.length)}`;
};
