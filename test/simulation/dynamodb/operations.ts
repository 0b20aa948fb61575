/**
 * DynamoDB's operations on the records, each at one instant. Requests are as the document client has
 * them, but for `TableName`, and belong to the table from then on. What it answers belongs to the
 * table too: whoever passes it on copies it.
 */
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { checkExpressions, holds, substitutesOf } from "../expressions.ts";
import { isMap, refuse, typeOf } from "./documents.ts";
import { parseCondition, parseUpdate } from "./parse.ts";
import { type QueryRequest, query } from "./query.ts";
import type { Entry, Key, Records } from "./records.ts";
import type { Schema } from "./schema.ts";
import type { Condition, Parsed, Substitutes } from "./tree.ts";
import { checkUpdate, updated } from "./update.ts";

export interface Operations {
  get(request: GetRequest): Item | undefined;
  query(request: QueryRequest): { readonly items: Item[]; readonly next: Item | undefined };
  put(request: PutRequest): Outcome;
  update(request: UpdateRequest): Outcome;
  delete(request: DeleteRequest): Outcome;
}

export type Outcome =
  | { readonly applied: true; readonly item: Item | undefined }
  | { readonly applied: false; readonly seen: Item | undefined };

export interface GetRequest {
  readonly Key: Item;
  readonly ConsistentRead?: boolean | undefined;
}

interface ConditionalRequest {
  readonly ConditionExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  readonly ExpressionAttributeValues?: Item | undefined;
}

export interface PutRequest extends ConditionalRequest {
  readonly Item: Item;
}

export interface UpdateRequest extends ConditionalRequest {
  readonly Key: Item;
  readonly UpdateExpression?: string | undefined;
}

export interface DeleteRequest extends ConditionalRequest {
  readonly Key: Item;
}

export const operationsOn = (
  records: Records,
  schema: Schema,
  { staleness, pageSize }: { readonly staleness: () => number; readonly pageSize: number },
): Operations => {
  /** As a read sees it, which may be as it was some writes ago. */
  const seen = ({ states }: Entry, isConsistent: boolean | undefined): Item | undefined =>
    states[isConsistent || states.length === 1 ? 0 : Math.min(staleness(), states.length - 1)];

  const write = (
    key: Key,
    request: ConditionalRequest,
    { update, change }: { readonly update?: Parsed<unknown>; readonly change: Change },
  ): Outcome => {
    const { ConditionExpression } = request;
    const condition = ConditionExpression ? parseCondition(ConditionExpression) : undefined;
    const substitutes = substitutesOf(request);
    checkExpressions(
      [condition, update].filter((each) => each !== undefined),
      substitutes,
    );
    const before = records.find(key)?.states[0];
    if (!meets(condition, before, substitutes)) return { applied: false, seen: before };
    const after = change(before, substitutes);
    if (after) checkIndexKeys(after, schema);
    records.set(key, after);
    return { applied: true, item: after };
  };

  return {
    get: ({ Key, ConsistentRead }) => {
      const entry = records.find(keyIn(Key, schema));
      return entry && seen(entry, ConsistentRead);
    },
    query: (request) => query(request, { records, schema, seen, pageSize }),
    put: (request) =>
      write(keyIn(request.Item, schema, "an item"), request, { change: () => request.Item }),
    delete: (request) => write(keyIn(request.Key, schema), request, { change: () => undefined }),
    update: (request) => {
      const { Key, UpdateExpression } = request;
      if (!UpdateExpression)
        return write(keyIn(Key, schema), request, { change: (it) => it ?? Key });
      const update = parseUpdate(UpdateExpression);
      const keys = [schema.table.partition, schema.table.sort];
      checkUpdate(update.tree, keys, substitutesOf(request));
      return write(keyIn(Key, schema), request, {
        update,
        change: (it, substitutes) => updated(update.tree, it ?? Key, substitutes),
      });
    },
  };
};

type Change = (before: Item | undefined, substitutes: Substitutes) => Item | undefined;

const meets = (
  condition: Parsed<Condition> | undefined,
  item: Item | undefined,
  substitutes: Substitutes,
): boolean => !condition || holds(condition.tree, item ?? NOTHING, substitutes);

const NOTHING: Item = {};

const keyIn = (item: unknown, { table }: Schema, what: "a key" | "an item" = "a key"): Key => {
  if (!isMap(item)) return refuse("The key is missing");
  const [partition, sort] = [item[table.partition], item[table.sort]];
  if (typeof partition !== "string" || typeof sort !== "string" || !partition || !sort) {
    return refuse("One of the required keys was not given a value");
  }
  if (what === "a key" && Object.keys(item).length !== 2) {
    return refuse("The provided key element does not match the schema");
  }
  return { partition, sort };
};

const checkIndexKeys = (item: Item, { keyTypes }: Schema): void => {
  for (const [name, type] of keyTypes) {
    const value = item[name];
    if (value === undefined) continue;
    if (typeOf(value) !== type || value === "") refuse(`Type mismatch for Index Key ${name}`);
  }
};
