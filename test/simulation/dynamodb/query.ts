import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { checkExpressions, holds, substitutesOf } from "../expressions.ts";
import { isEqual, orderOf, refuse } from "./documents.ts";
import { parseCondition, parseProjection } from "./parse.ts";
import type { Entry, Records } from "./records.ts";
import type { Index, Schema } from "./schema.ts";
import { type Condition, nameOf, type Operand, type Parsed, type Substitutes } from "./tree.ts";

export interface QueryRequest {
  readonly IndexName?: string | undefined;
  readonly KeyConditionExpression?: string | undefined;
  readonly FilterExpression?: string | undefined;
  readonly ProjectionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  readonly ExpressionAttributeValues?: Item | undefined;
  readonly Limit?: number | undefined;
  readonly ExclusiveStartKey?: Item | undefined;
  readonly ScanIndexForward?: boolean | undefined;
  readonly ConsistentRead?: boolean | undefined;
}

export interface QueriedTable {
  readonly records: Records;
  readonly schema: Schema;
  readonly seen: (entry: Entry, isConsistent: boolean | undefined) => Item | undefined;
  readonly pageSize: number;
}

export const query = (
  request: QueryRequest,
  { records, schema, seen, pageSize }: QueriedTable,
): { readonly items: Item[]; readonly next: Item | undefined } => {
  const { IndexName, ConsistentRead, ExclusiveStartKey: start } = request;
  const index = IndexName === undefined ? schema.table : schema.indexes.get(IndexName);
  if (!index) return refuse(`The table does not have the specified index: ${IndexName}`);
  if (IndexName && ConsistentRead) refuse("Consistent reads are not supported on global indexes");
  const { keys, filter, projection, substitutes } = expressionsOf(request, index);
  const { partition, sort } = keysIn(keys, index, substitutes);
  const limit = Math.min(request.Limit ?? pageSize, pageSize);
  const keyNames = [
    ...new Set([index.partition, index.sort, schema.table.partition, schema.table.sort]),
  ];
  if (start) checkStart(start, keyNames, { index, partition });

  const isForward = request.ScanIndexForward ?? true;
  const entries = IndexName ? records.in() : records.in(String(partition));
  const found = entries.flatMap((entry) => {
    const item = seen(entry, ConsistentRead);
    return item && keyNames.every((name) => name in item) && holds(keys, item, substitutes)
      ? [pick(item, index.attributes)]
      : [];
  });
  // A partition's records are in order already.
  if (IndexName) found.sort((a, b) => orderBy(keyNames, a, b));
  if (!isForward) found.reverse();
  const first = start
    ? found.findIndex((item) => orderBy(keyNames, item, start) * (isForward ? 1 : -1) > 0)
    : 0;
  const page = first < 0 ? [] : found.slice(first, first + limit);
  const last = page.at(-1);
  // It stops at the limit without a look at what comes behind. Where the range ends it knows, but in
  // an index several may have that key.
  const isLast = !IndexName && isEqual(last?.[index.sort], endOf(sort, isForward, substitutes));
  return {
    items: page
      .filter((item) => !filter || holds(filter, item, substitutes))
      .map((item) => (projection ? pick(item, projection) : item)),
    next: last && page.length === limit && !isLast ? pick(last, new Set(keyNames)) : undefined,
  };
};

/** The last value of the sort key that the range holds, if it names one. */
const endOf = (
  sort: Condition | undefined,
  isForward: boolean,
  { values }: Substitutes,
): unknown => {
  const valueIn = (operand: Operand): unknown =>
    operand.kind === "value" ? values[operand.name] : undefined;
  if (sort?.kind === "between") return valueIn(isForward ? sort.high : sort.low);
  return sort?.kind === (isForward ? "<=" : ">=") ? valueIn(sort.right) : undefined;
};

const expressionsOf = (request: QueryRequest, index: Index) => {
  const { KeyConditionExpression, FilterExpression, ProjectionExpression } = request;
  if (!KeyConditionExpression) return refuse("KeyConditionExpression is missing");
  const keys = parseCondition(KeyConditionExpression);
  const filter = FilterExpression ? parseCondition(FilterExpression) : undefined;
  const projection = ProjectionExpression ? parseProjection(ProjectionExpression) : undefined;
  const substitutes = substitutesOf(request);
  checkExpressions(
    [keys, filter, projection].filter((each) => each !== undefined),
    substitutes,
  );
  const filtered = filter && attributesIn(filter, index, substitutes);
  if (filtered?.has(index.partition) || filtered?.has(index.sort)) {
    refuse("Filter Expression can only contain non-primary key attributes");
  }
  return {
    keys: keys.tree,
    filter: filter?.tree,
    projection: projection && attributesIn(projection, index, substitutes),
    substitutes,
  };
};

/** Only what an index has can be asked of it. */
const attributesIn = (
  { paths }: Parsed<unknown>,
  { attributes }: Index,
  { names }: Substitutes,
): ReadonlySet<string> => {
  const named = paths.map(([step = ""]) => String(nameOf(step, names)));
  const missing = attributes && named.find((name) => !attributes.has(name));
  if (missing !== undefined) refuse(`The index does not project ${missing}`);
  return new Set(named);
};

/** One value of the partition key, and at most one condition of the sort key. */
const keysIn = (
  keys: Condition,
  index: Index,
  substitutes: Substitutes,
): { readonly partition: unknown; readonly sort: Condition | undefined } => {
  const parts = keys.kind === "and" ? keys.of : [keys];
  const named = (name: string) => parts.find((part) => keyOf(part, substitutes) === name);
  const [partition, sort] = [named(index.partition), named(index.sort)];
  const isSupported = partition?.kind === "=" && partition.right.kind === "value";
  if (!isSupported || parts.length !== (sort ? 2 : 1)) {
    return refuse("Query key condition not supported");
  }
  return { partition: substitutes.values[partition.right.name], sort };
};

/** The attribute that a condition compares with values. */
const keyOf = (condition: Condition, { names }: Substitutes): string | undefined => {
  const nameIn = (operand: Operand): string | undefined =>
    operand.kind === "path" && operand.path.length === 1
      ? String(nameOf(operand.path[0] ?? "", names))
      : undefined;
  switch (condition.kind) {
    case "=":
    case "<":
    case "<=":
    case ">":
    case ">=":
      return nameIn(condition.left);
    case "between":
    case "begins_with":
      return nameIn(condition.operand);
    default:
      return undefined;
  }
};

const checkStart = (
  start: Item,
  keyNames: readonly string[],
  { index, partition }: { readonly index: Index; readonly partition: unknown },
): void => {
  const isKey =
    Object.keys(start).length === keyNames.length && keyNames.every((name) => name in start);
  if (!isKey || start[index.partition] !== partition) {
    refuse("The provided starting key is invalid");
  }
};

const orderBy = (names: readonly string[], a: Item, b: Item): number => {
  for (const name of names) {
    const order = orderOf(a[name], b[name]) ?? 0;
    if (order !== 0) return order;
  }
  return 0;
};

const pick = (item: Item, names: ReadonlySet<string> | undefined): Item =>
  names ? Object.fromEntries(Object.entries(item).filter(([name]) => names.has(name))) : item;
