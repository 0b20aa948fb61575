/** Values as lib-dynamodb's document client has them: what they are, how they compare, and copies of them. */
import type { Item } from "../../../lib/store/dynamodb/table.ts";

export type Type = "S" | "N" | "B" | "BOOL" | "NULL" | "L" | "M";

/** What DynamoDB, or the client before it, refuses: a mistake in a request. */
export class ValidationException extends Error {
  override readonly name = "ValidationException";
}

export const refuse = (why: string): never => {
  throw new ValidationException(why);
};

export const typeOf = (value: unknown): Type => {
  if (typeof value === "string") return "S";
  if (typeof value === "number") return "N";
  if (typeof value === "boolean") return "BOOL";
  if (value === null) return "NULL";
  if (value instanceof Uint8Array) return "B";
  return Array.isArray(value) ? "L" : "M";
};

export const isMap = (value: unknown): value is Item =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !(value instanceof Uint8Array);

/** Undefined where there is none. */
export const childOf = (node: unknown, step: string | number): unknown => {
  if (typeof step === "number") return Array.isArray(node) ? node[step] : undefined;
  return isMap(node) && Object.hasOwn(node, step) ? node[step] : undefined;
};

/** A copy that shares nothing. */
export const copyOf = <T>(value: T): T => copied(value) as T;

const copied = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(copied);
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const copy: Item = {};
  for (const key of Object.keys(value)) copy[key] = copied((value as Item)[key]);
  return copy;
};

/** A copy as the client sends it. At the top, what is undefined is left out; deeper, it is refused. */
export const sentItem = (item: Item): Item => {
  const sent: Item = {};
  for (const key of Object.keys(item)) {
    if (item[key] !== undefined) sent[key] = sentValue(item[key]);
  }
  return sent;
};

export const sentValue = (value: unknown): unknown => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (!Number.isSafeInteger(value)) refuse(`${value}: only whole, safe numbers are simulated`);
      return value;
    case "object":
      break;
    default:
      refuse(`a document holds no ${typeof value}`);
  }
  if (value === null) return value;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(sentValue);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) refuse("a document holds no instances");
  const sent: Item = {};
  for (const [key, field] of Object.entries(value as Item)) sent[key] = sentValue(field);
  return sent;
};

export const isEqual = (a: unknown, b: unknown): boolean => {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Uint8Array) return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  if (Array.isArray(a)) {
    return (
      Array.isArray(b) && a.length === b.length && a.every((one, index) => isEqual(one, b[index]))
    );
  }
  if (!isMap(a) || !isMap(b)) return false;
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  return keys.length === others.length && keys.every((key) => key in b && isEqual(a[key], b[key]));
};

/** Undefined where the two have no order: of different types, or of one that has none. */
export const orderOf = (a: unknown, b: unknown): number | undefined => {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return orderOfText(a, b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  return undefined;
};

/** By their bytes in UTF-8. That is the order of their UTF-16 units, but for surrogates, which come last. */
export const orderOfText = (a: string, b: string): number => {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const [unit, other] = [a.charCodeAt(at), b.charCodeAt(at)];
    if (unit !== other) return rank(unit) - rank(other);
  }
  return a.length - b.length;
};

const rank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
