/** DynamoDB's conditions, on plain documents. See `dynamodb/update.ts` for its updates. */
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { childOf, isEqual, orderOf, refuse } from "./dynamodb/documents.ts";
import {
  type Condition,
  nameOf,
  type Operand,
  type Parsed,
  type Path,
  type Substitutes,
} from "./dynamodb/tree.ts";

export const substitutesOf = ({
  ExpressionAttributeNames: names,
  ExpressionAttributeValues: values,
}: {
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>> | undefined;
  readonly ExpressionAttributeValues?: Item | undefined;
}): Substitutes => {
  for (const given of [names, values]) {
    if (given && Object.keys(given).length === 0) refuse("Names and values must not be empty");
  }
  return { names: names ?? {}, values: values ?? {} };
};

/** What DynamoDB says about a request's expressions, whatever the item: none of it depends on one. */
export const checkExpressions = (
  expressions: readonly Parsed<unknown>[],
  substitutes: Substitutes,
): void => {
  checkUse("names", substitutes.names, expressions);
  checkUse("values", substitutes.values, expressions);
  for (const { checks } of expressions) for (const check of checks) check(substitutes);
};

const checkUse = (
  kind: "names" | "values",
  given: Readonly<Record<string, unknown>>,
  expressions: readonly Parsed<unknown>[],
): void => {
  for (const expression of expressions) {
    for (const name of expression[kind]) {
      if (given[name] === undefined) refuse(`${name} is used in an expression and not defined`);
    }
  }
  for (const name of Object.keys(given)) {
    if (!expressions.some((expression) => expression[kind].has(name))) {
      refuse(`${name} is defined and used in no expression`);
    }
  }
};

/** Two-valued: what isn't there, or can't be compared, makes a comparison false, and `<>` true. */
export const holds = (condition: Condition, item: Item, substitutes: Substitutes): boolean => {
  const value = (operand: Operand): unknown => operandIn(operand, item, substitutes);
  switch (condition.kind) {
    case "and":
      return condition.of.every((each) => holds(each, item, substitutes));
    case "or":
      return condition.of.some((each) => holds(each, item, substitutes));
    case "not":
      return !holds(condition.of, item, substitutes);
    case "exists":
      return valueAt(condition.path, item, substitutes) !== undefined;
    case "=":
      return isSame(value(condition.left), value(condition.right));
    case "<>":
      return !isSame(value(condition.left), value(condition.right));
    case "between": {
      const middle = value(condition.operand);
      return (
        isOrdered(value(condition.low), "<=", middle) &&
        isOrdered(middle, "<=", value(condition.high))
      );
    }
    case "begins_with":
      return beginsWith(value(condition.operand), value(condition.prefix));
    default:
      return isOrdered(value(condition.left), condition.kind, value(condition.right));
  }
};

/** Undefined where it isn't there. */
export const operandIn = (operand: Operand, item: Item, substitutes: Substitutes): unknown => {
  switch (operand.kind) {
    case "value":
      return substitutes.values[operand.name];
    case "path":
      return valueAt(operand.path, item, substitutes);
    case "size":
      return sizeOf(valueAt(operand.path, item, substitutes));
    case "if_not_exists": {
      // Both have to be there, the second one even where it isn't taken.
      const otherwise = present(operandIn(operand.otherwise, item, substitutes));
      const value = valueAt(operand.path, item, substitutes);
      return value === undefined ? otherwise : value;
    }
    default:
      return combined(
        operand.kind,
        operandIn(operand.left, item, substitutes),
        operandIn(operand.right, item, substitutes),
      );
  }
};

const valueAt = (path: Path, item: Item, { names }: Substitutes): unknown => {
  let node: unknown = item;
  for (const step of path) {
    node = childOf(node, nameOf(step, names));
    if (node === undefined) return undefined;
  }
  return node;
};

const isSame = (left: unknown, right: unknown): boolean =>
  left !== undefined && right !== undefined && isEqual(left, right);

const isOrdered = (left: unknown, by: "<" | "<=" | ">" | ">=", right: unknown): boolean => {
  const order = orderOf(left, right);
  if (order === undefined) return false;
  if (order === 0) return by === "<=" || by === ">=";
  return order < 0 === (by === "<" || by === "<=");
};

const beginsWith = (value: unknown, prefix: unknown): boolean => {
  if (typeof value === "string" && typeof prefix === "string") return value.startsWith(prefix);
  if (!(value instanceof Uint8Array) || !(prefix instanceof Uint8Array)) return false;
  return Buffer.compare(value.subarray(0, prefix.length), prefix) === 0;
};

const sizeOf = (value: unknown): number | undefined => {
  if (typeof value === "string" || value instanceof Uint8Array || Array.isArray(value)) {
    return value.length;
  }
  return typeof value === "object" && value !== null ? Object.keys(value).length : undefined;
};

const combined = (by: "+" | "-" | "list_append", left: unknown, right: unknown): unknown => {
  present(left);
  present(right);
  if (by === "list_append" && Array.isArray(left) && Array.isArray(right)) {
    return [...(left as unknown[]), ...(right as unknown[])];
  }
  if (by !== "list_append" && typeof left === "number" && typeof right === "number") {
    return by === "+" ? left + right : left - right;
  }
  return refuse("An operand in the update expression has an incorrect data type");
};

export const present = (value: unknown): unknown =>
  value === undefined
    ? refuse("The provided expression refers to an attribute that does not exist in the item")
    : value;
