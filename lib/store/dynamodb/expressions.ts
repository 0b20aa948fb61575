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
  const text = [update, ...condition].join(" ");
  const usedNames = [...new Set(text.match(/#\w+/g))].map((name) => name.slice(1));
  const usedValues = [...new Set(text.match(/:\w+/g))].map((name): [string, unknown] => [
    name,
    values[name.slice(1)],
  ]);
  return {
    ...(update ? { UpdateExpression: update } : {}),
    ConditionExpression: condition.join(" AND "),
    ExpressionAttributeNames: Object.fromEntries(
      usedNames.map((name) => [`#${name}`, names[name] ?? name]),
    ),
    ...(usedValues.length ? { ExpressionAttributeValues: Object.fromEntries(usedValues) } : {}),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
  };
};
