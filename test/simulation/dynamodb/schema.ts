/** What `serverless.yml` defines of the table, as the simulation needs it. */
import { readTableDefinition, type TableDefinition } from "../../../dev/table.ts";
import type { Type } from "./documents.ts";

export interface Index {
  readonly partition: string;
  readonly sort: string;
  /** Undefined for all. */
  readonly attributes: ReadonlySet<string> | undefined;
}

export interface Schema {
  readonly table: Index;
  readonly indexes: ReadonlyMap<string, Index>;
  readonly keyTypes: ReadonlyMap<string, Type>;
}

export const schemaOf = ({
  KeySchema,
  GlobalSecondaryIndexes,
  AttributeDefinitions,
}: TableDefinition): Schema => {
  const table = { ...keysOf(KeySchema), attributes: undefined };
  const indexes = GlobalSecondaryIndexes.map(
    ({ IndexName = "", KeySchema: schema = [], Projection: projection }): [string, Index] => {
      const keys = keysOf(schema);
      const attributes = [
        ...Object.values(keysOf(KeySchema)),
        ...Object.values(keys),
        ...(projection?.NonKeyAttributes ?? []),
      ];
      const isWhole = projection?.ProjectionType === "ALL";
      return [IndexName, { ...keys, attributes: isWhole ? undefined : new Set(attributes) }];
    },
  );
  const keyTypes = AttributeDefinitions.map(
    ({ AttributeName = "", AttributeType = "S" }): [string, Type] => [AttributeName, AttributeType],
  );
  return { table, indexes: new Map(indexes), keyTypes: new Map(keyTypes) };
};

const keysOf = (schema: TableDefinition["KeySchema"]) => {
  const named = (type: string): string =>
    schema.find(({ KeyType }) => KeyType === type)?.AttributeName ?? "";
  return { partition: named("HASH"), sort: named("RANGE") };
};

export const deployedSchema: Schema = schemaOf(readTableDefinition());
