/**
 * DynamoDB's updates, on plain documents: every right-hand side, and every index of a list, means the
 * item as it was before. The item itself isn't changed; the new one shares with it what stays.
 */
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { operandIn, present } from "../expressions.ts";
import { isMap, refuse } from "./documents.ts";
import { type Path, resolved, type Substitutes, type Update } from "./tree.ts";

/** What DynamoDB says about an update whatever the item. */
export const checkUpdate = (
  { sets, removes }: Update,
  keys: readonly string[],
  substitutes: Substitutes,
): void => {
  const paths = [...sets.map(({ path }) => path), ...removes].map((path) =>
    resolved(path, substitutes),
  );
  for (const [at, path] of paths.entries()) {
    for (let other = 0; other < at; other++) refuseTogether(path, paths[other] ?? []);
    if (keys.includes(String(path[0]))) refuse(`Cannot update attribute ${path[0]}: it is a key`);
  }
};

const refuseTogether = (path: Path, other: Path): void => {
  const length = Math.min(path.length, other.length);
  for (let at = 0; at < length; at++) {
    if (path[at] === other[at]) continue;
    if (typeof path[at] === typeof other[at]) return;
    refuse(`Two document paths conflict with each other: [${path}], [${other}]`);
  }
  refuse(`Two document paths overlap with each other: [${path}], [${other}]`);
};

export const updated = ({ sets, removes }: Update, item: Item, substitutes: Substitutes): Item => {
  const next = { ...item };
  const written = sets.map(({ path, operand }): Write => {
    const value = present(operandIn(operand, item, substitutes));
    return { path: resolved(path, substitutes), value };
  });
  // Beyond the end of a list values are appended, in the order of their indexes.
  written.sort((a, b) => lastIndex(a) - lastIndex(b));
  const removed = removes.map((path) => resolved(path, substitutes));
  for (const path of removed) write(next, { path, value: GONE });
  for (const each of written) write(next, each);
  // Deepest first: to close the gaps of a list moves what lies behind them.
  for (const path of removed.toSorted((a, b) => b.length - a.length)) {
    if (typeof path.at(-1) !== "number") continue;
    write(next, { path: path.slice(0, -1), value: CLOSE_GAPS });
  }
  return next;
};

interface Write {
  readonly path: Path;
  readonly value: unknown;
}

/** Stands where an element of a list was removed, until all others have found their place. */
const GONE = Symbol("removed");
const CLOSE_GAPS = Symbol("without what was removed");

const lastIndex = ({ path }: Write): number => {
  const last = path.at(-1);
  return typeof last === "number" ? last : -1;
};

/** `root` is new, and is written into; what lies deeper is copied. */
const write = (root: Item, { path, value }: Write): void => {
  const name = String(path[0]);
  if (path.length > 1 || value === CLOSE_GAPS)
    root[name] = nodeWith(root[name], path, { at: 1, value });
  else if (value === GONE) delete root[name];
  else root[name] = value;
};

const nodeWith = (
  node: unknown,
  path: Path,
  { at, value }: { readonly at: number; readonly value: unknown },
): unknown => {
  const step = path[at];
  if (step === undefined) {
    const isListWithGaps = value === CLOSE_GAPS && Array.isArray(node);
    return isListWithGaps ? node.filter((element) => element !== GONE) : value;
  }
  if (typeof step === "number" && Array.isArray(node)) {
    const list: unknown[] = [...node];
    const isLast = at === path.length - 1;
    if (step < list.length) list[step] = nodeWith(list[step], path, { at: at + 1, value });
    else if (!isLast) return invalidPath();
    else if (value !== GONE) list.push(value);
    return list;
  }
  if (typeof step === "string" && isMap(node)) {
    const map = { ...node };
    if (at < path.length - 1 || value === CLOSE_GAPS) {
      if (!Object.hasOwn(map, step)) return invalidPath();
      map[step] = nodeWith(map[step], path, { at: at + 1, value });
    } else if (value === GONE) delete map[step];
    else map[step] = value;
    return map;
  }
  return invalidPath();
};

const invalidPath = (): never =>
  refuse("The document path provided in the update expression is invalid for update");
