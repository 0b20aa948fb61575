import { partitionKey } from "../keys.ts";
import type { Incarnation } from "../store.ts";
import { sortKeyPrefixes } from "./keys.ts";
import type { Table } from "./requests.ts";
import { TABLE } from "./table.ts";

/** Deletes all items of an incarnation but its HEAD: for one whose HEAD says that it is deleted for good. */
export const purge = async (table: Table, { key, incarnation }: Incarnation): Promise<void> => {
  for (const prefix of sortKeyPrefixes(incarnation)) {
    const keys = table.items({
      KeyConditionExpression: "#pk = :pk AND begins_with(#sk, :prefix)",
      ProjectionExpression: "#pk, #sk",
      ExpressionAttributeNames: { "#pk": TABLE.partitionKey, "#sk": TABLE.sortKey },
      ExpressionAttributeValues: { ":pk": partitionKey(key), ":prefix": prefix },
    });
    await table.deleteAll(await Array.fromAsync(keys));
  }
};
