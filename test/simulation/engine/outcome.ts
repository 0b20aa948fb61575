import type { Table } from "../../../lib/store/dynamodb/requests.ts";
import { StoreRefusedError } from "../../../lib/store/errors.ts";

/** What a table answers; engines refuse the same requests, each in its own words. */
export const outcomeOf = async <T>(
  table: Table,
  act: (table: Table) => Promise<T>,
): Promise<T | "refused"> => {
  try {
    return await act(table);
  } catch (error) {
    if (error instanceof StoreRefusedError) return "refused";
    throw error;
  }
};
