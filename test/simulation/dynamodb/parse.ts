/**
 * DynamoDB's expressions, parsed. What depends on a request's names and values alone, before any
 * item is looked at, becomes one of the `checks`.
 */
import { type Cursor, call, cursorOver, expect, pathAt, syntaxError } from "./cursor.ts";
import { orderOf, refuse, type Type, typeOf } from "./documents.ts";
import {
  type Comparator,
  type Condition,
  type Operand,
  type Parsed,
  type Path,
  resolved,
  type Update,
} from "./tree.ts";

export const parseCondition = (text: string): Parsed<Condition> =>
  parsed(conditions, text, disjunctionAt);

export const parseUpdate = (text: string): Parsed<Update> => parsed(updates, text, updateAt);

export const parseProjection = (text: string): Parsed<readonly Path[]> =>
  parsed(projections, text, projectionAt);

/** Each text is parsed once. */
const conditions = new Map<string, Parsed<Condition>>();
const updates = new Map<string, Parsed<Update>>();
const projections = new Map<string, Parsed<readonly Path[]>>();

const parsed = <Tree>(
  known: Map<string, Parsed<Tree>>,
  text: string,
  grammar: (cursor: Cursor) => Tree,
): Parsed<Tree> => {
  const seen = known.get(text);
  if (seen) return seen;
  const cursor = cursorOver(text);
  const tree = grammar(cursor);
  if (cursor.next !== "") syntaxError(cursor);
  const { names, values, paths, checks } = cursor;
  const fresh = { tree, names, values, paths, checks };
  known.set(text, fresh);
  return fresh;
};

/** A path or a value; `types` are those that its operator takes of a value. */
const termAt = (cursor: Cursor, operator: string, types: readonly Type[]): Operand => {
  if (!cursor.next.startsWith(":")) return { kind: "path", path: pathAt(cursor) };
  const name = cursor.take();
  cursor.values.add(name);
  demandType(cursor, { kind: "value", name }, { operator, types });
  return { kind: "value", name };
};

const demandType = (
  { checks }: Cursor,
  operand: Operand,
  { operator, types }: { readonly operator: string; readonly types: readonly Type[] },
): void => {
  if (operand.kind !== "value" || types === ANY) return;
  checks.push(({ values }) => {
    const type = typeOf(values[operand.name]);
    if (!types.includes(type)) {
      refuse(`Incorrect operand type; operator or function: ${operator}, operand type: ${type}`);
    }
  });
};

const ANY: readonly Type[] = ["S", "N", "B", "BOOL", "NULL", "L", "M"];
const ORDERED: readonly Type[] = ["S", "N", "B"];

const demandDistinct = ({ checks }: Cursor, first: Operand, other: Operand): void => {
  if (first.kind !== "path" || other.kind !== "path") return;
  checks.push((substitutes) => {
    const [path, others] = [resolved(first.path, substitutes), resolved(other.path, substitutes)];
    if (path.length === others.length && path.every((step, at) => step === others[at])) {
      refuse(`The first operand must be distinct from the remaining operands: [${path}]`);
    }
  });
};

const disjunctionAt = (cursor: Cursor): Condition => chainAt(cursor, "or", conjunctionAt);

const conjunctionAt = (cursor: Cursor): Condition => chainAt(cursor, "and", negationAt);

const chainAt = (
  cursor: Cursor,
  kind: "and" | "or",
  partAt: (cursor: Cursor) => Condition,
): Condition => {
  const first = partAt(cursor);
  const of = [first];
  while (cursor.skip(kind.toUpperCase())) of.push(partAt(cursor));
  return of.length === 1 ? first : { kind, of };
};

const negationAt = (cursor: Cursor): Condition =>
  cursor.skip("NOT") ? { kind: "not", of: negationAt(cursor) } : predicateAt(cursor);

const predicateAt = (cursor: Cursor): Condition => {
  if (cursor.skip("(")) {
    const inner = disjunctionAt(cursor);
    expect(cursor, ")");
    if (inner === cursor.grouped) refuse("The expression has redundant parentheses");
    cursor.grouped = inner;
    return inner;
  }
  if (call(cursor, "attribute_exists")) return { kind: "exists", path: argumentAt(cursor) };
  if (call(cursor, "attribute_not_exists")) {
    return { kind: "not", of: { kind: "exists", path: argumentAt(cursor) } };
  }
  if (call(cursor, "begins_with")) {
    const operand = termAt(cursor, "begins_with", ["S", "B"]);
    expect(cursor, ",");
    const prefix = termAt(cursor, "begins_with", ["S", "B"]);
    expect(cursor, ")");
    demandDistinct(cursor, operand, prefix);
    return { kind: "begins_with", operand, prefix };
  }
  const left = comparedAt(cursor);
  return cursor.skip("BETWEEN") ? betweenAt(cursor, left) : comparisonAt(cursor, left);
};

const argumentAt = (cursor: Cursor): Path => {
  const path = pathAt(cursor);
  expect(cursor, ")");
  return path;
};

const comparedAt = (cursor: Cursor): Operand =>
  call(cursor, "size")
    ? { kind: "size", path: argumentAt(cursor) }
    : termAt(cursor, "a comparison", ANY);

const comparisonAt = (cursor: Cursor, left: Operand): Condition => {
  const kind = cursor.next;
  if (!isComparator(kind)) return syntaxError(cursor);
  cursor.take();
  const right = comparedAt(cursor);
  const types = kind === "=" || kind === "<>" ? ANY : ORDERED;
  for (const operand of [left, right]) demandType(cursor, operand, { operator: kind, types });
  demandDistinct(cursor, left, right);
  return { kind, left, right };
};

const isComparator = (token: string): token is Comparator =>
  ["=", "<>", "<", "<=", ">", ">="].includes(token);

const betweenAt = (cursor: Cursor, operand: Operand): Condition => {
  const low = comparedAt(cursor);
  expect(cursor, "AND");
  const high = comparedAt(cursor);
  for (const each of [operand, low, high]) {
    demandType(cursor, each, { operator: "BETWEEN", types: ORDERED });
  }
  demandDistinct(cursor, operand, low);
  demandDistinct(cursor, operand, high);
  if (low.kind === "value" && high.kind === "value") {
    cursor.checks.push(({ values }) => {
      const order = orderOf(values[low.name], values[high.name]);
      if (order === undefined || order > 0) refuse("BETWEEN needs bounds of one type, in order");
    });
  }
  return { kind: "between", operand, low, high };
};

const updateAt = (cursor: Cursor): Update => {
  const sets: { path: Path; operand: Operand }[] = [];
  const removes: Path[] = [];
  while (cursor.next !== "") {
    if (sets.length === 0 && cursor.skip("SET")) {
      do {
        const path = pathAt(cursor);
        expect(cursor, "=");
        sets.push({ path, operand: sumAt(cursor) });
      } while (cursor.skip(","));
    } else if (removes.length === 0 && cursor.skip("REMOVE")) {
      do removes.push(pathAt(cursor));
      while (cursor.skip(","));
    } else syntaxError(cursor);
  }
  return { sets, removes };
};

const sumAt = (cursor: Cursor): Operand => {
  const left = operandAt(cursor);
  const kind = cursor.next;
  if (kind !== "+" && kind !== "-") return left;
  cursor.take();
  const right = operandAt(cursor);
  for (const each of [left, right]) demandType(cursor, each, { operator: kind, types: ["N"] });
  return { kind, left, right };
};

const operandAt = (cursor: Cursor): Operand => {
  if (call(cursor, "if_not_exists")) {
    const path = pathAt(cursor);
    expect(cursor, ",");
    const otherwise = operandAt(cursor);
    expect(cursor, ")");
    demandDistinct(cursor, { kind: "path", path }, otherwise);
    return { kind: "if_not_exists", path, otherwise };
  }
  if (call(cursor, "list_append")) {
    const left = operandAt(cursor);
    expect(cursor, ",");
    const right = operandAt(cursor);
    expect(cursor, ")");
    for (const each of [left, right]) {
      demandType(cursor, each, { operator: "list_append", types: ["L"] });
    }
    return { kind: "list_append", left, right };
  }
  return termAt(cursor, "SET", ANY);
};

const projectionAt = (cursor: Cursor): Path[] => {
  const paths = [pathAt(cursor)];
  while (cursor.skip(",")) paths.push(pathAt(cursor));
  return paths;
};
