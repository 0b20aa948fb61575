/** What an expression says. */
import type { Item } from "../../../lib/store/dynamodb/table.ts";

export interface Parsed<Tree> {
  readonly tree: Tree;
  readonly paths: readonly Path[];
  readonly names: ReadonlySet<string>;
  readonly values: ReadonlySet<string>;
  readonly checks: readonly ((substitutes: Substitutes) => void)[];
}

/** What a request says that `#name` and `:value` stand for. */
export interface Substitutes {
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
}

/** Names, or `#` and what `names` has for it, and indexes of lists. */
export type Path = readonly (string | number)[];

export type Operand =
  | { readonly kind: "path"; readonly path: Path }
  | { readonly kind: "value"; readonly name: string }
  | { readonly kind: "size"; readonly path: Path }
  | { readonly kind: "if_not_exists"; readonly path: Path; readonly otherwise: Operand }
  | { readonly kind: "list_append"; readonly left: Operand; readonly right: Operand }
  | { readonly kind: "+" | "-"; readonly left: Operand; readonly right: Operand };

export type Comparator = "=" | "<>" | "<" | "<=" | ">" | ">=";

export type Condition =
  | { readonly kind: Comparator; readonly left: Operand; readonly right: Operand }
  | {
      readonly kind: "between";
      readonly operand: Operand;
      readonly low: Operand;
      readonly high: Operand;
    }
  | { readonly kind: "begins_with"; readonly operand: Operand; readonly prefix: Operand }
  | { readonly kind: "exists"; readonly path: Path }
  | { readonly kind: "not"; readonly of: Condition }
  | { readonly kind: "and" | "or"; readonly of: readonly Condition[] };

export interface Update {
  readonly sets: readonly { readonly path: Path; readonly operand: Operand }[];
  readonly removes: readonly Path[];
}

export const resolved = (path: Path, { names }: Substitutes): Path =>
  path.map((step) => nameOf(step, names));

export const nameOf = <Step extends string | number>(
  step: Step,
  names: Substitutes["names"],
): Step | string =>
  typeof step === "string" && step.startsWith("#") ? (names[step] ?? step) : step;
