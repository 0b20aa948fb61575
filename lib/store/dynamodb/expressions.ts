import type { Item } from "./table.ts";

export interface Change {
  readonly set?: readonly string[];
  readonly remove?: readonly string[];
  readonly condition: readonly string[];
  /** Those that no expression names are left out. */
  readonly values?: Item;
  /** Names that aren't spelled as their attribute: keys of maps. */
  readonly names?: Readonly<Record<string, string>>;
}

/**
 * The expressions of a conditional write. In them `#name` is the attribute of that name, unless
 * `names` says otherwise, and `:name` a value.
 */
export const expressions = ({
  set = [],
  remove = [],
  condition,
  values = {},
  names = {},
}: Change) => {
  const update = [
    ...(set.length ? [`SET ${set.join(", ")}`] : []),
    ...(remove.length ? [`REMOVE ${remove.join(", ")}`] : []),
  ].join(" ");
  const used = usedIn([update, ...condition].join(" "));
  return {
    ...(update ? { UpdateExpression: update } : {}),
    ConditionExpression: condition.join(" AND "),
    ExpressionAttributeNames: Object.fromEntries(
      used.names.map((name) => [`#${name}`, names[name] ?? name]),
    ),
    ...(used.values.length > 0
      ? {
          ExpressionAttributeValues: Object.fromEntries(
            used.values.map((name) => [`:${name}`, values[name]]),
          ),
        }
      : {}),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
  };
};

interface Used {
  readonly names: readonly string[];
  readonly values: readonly string[];
}

/** By text: the store's writes have a few forms, and each is read once. */
const known = new Map<string, Used>();

const usedIn = (text: string): Used => {
  const before = known.get(text);
  if (before) return before;
  const all = (pattern: RegExp): string[] =>
    [...new Set(text.match(pattern))].map((name) => name.slice(1));
  const used = { names: all(/#\w+/g), values: all(/:\w+/g) };
  if (known.size < MAX_KNOWN) known.set(text, used);
  return used;
};

const MAX_KNOWN = 1000;
