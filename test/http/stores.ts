/** The stores that the history's routes are tried on, each empty. */
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";

export interface StoreKind {
  readonly name: string;
  /** Gives, for one fresh store, as many processes as are asked for: none has what another cached. */
  readonly open: () => Promise<() => SessionStore>;
}

/** For `describe.each`. */
export const storeKinds = (): StoreKind[] => [
  {
    name: "memory",
    open: async () => {
      const store = memorySessionStore();
      return () => store;
    },
  },
  ...dynamoEngines().map(({ name, endpoint }) => ({
    name,
    open: async () => {
      const table = await freshTable(endpoint);
      return () => dynamoSessionStore(table);
    },
  })),
];
