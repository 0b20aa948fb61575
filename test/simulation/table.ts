/** An in-memory table that does what DynamoDB does, behind the store's `Table` or behind the SDK's client. */
import { expressions } from "../../lib/store/dynamodb/expressions.ts";
import { itemsOf, type Table, type Written } from "../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { StoreRefusedError } from "../../lib/store/errors.ts";
import { copyOf, sentItem } from "./dynamodb/documents.ts";
import { type Operations, type Outcome, operationsOn } from "./dynamodb/operations.ts";
import type { QueryRequest } from "./dynamodb/query.ts";
import { createRecords } from "./dynamodb/records.ts";
import { deployedSchema } from "./dynamodb/schema.ts";
import { type Transport, transportTo } from "./dynamodb/transport.ts";

export interface SimulatedTable {
  /** Every call is applied at once; its promise is already settled. Mistakes reject with a `StoreRefusedError`. */
  asTable(): Table;
  /** A request handler for the SDK's own client, whatever the name of its table. */
  transport(): Transport;
  /** As the table's time to live does, some day. */
  expire(key: Item): void;
  /** All items, in the order of their keys within each partition. */
  items(): Item[];
}

export interface SimulatedTableOptions {
  /** How many writes ago an item is seen by a read that isn't consistent. Asked for each item; 0 by default. */
  readonly staleness?: () => number;
  /** Items in one page of a query. */
  readonly pageSize?: number;
}

export const simulatedTable = ({
  staleness = () => 0,
  pageSize = 1000,
}: SimulatedTableOptions = {}): SimulatedTable => {
  const records = createRecords();
  const operations = operationsOn(records, deployedSchema, { staleness, pageSize });
  return {
    asTable: () => tableOn(operations),
    transport: () => transportTo(operations),
    expire: (Key) => {
      operations.delete({ Key: sentItem(Key) });
    },
    items: () => records.in().flatMap(({ states: [item] }) => (item ? [copyOf(item)] : [])),
  };
};

const tableOn = (operations: Operations): Table => {
  const read: Table["read"] = (Key, ConsistentRead = true) =>
    settled(() => {
      const item = operations.get({ Key: sentItem(Key), ConsistentRead });
      return item && copyOf(item);
    });

  const query: Table["query"] = (input) =>
    settled(() => {
      const { items, next } = operations.query(sentRequest(input));
      return { items: items.map(copyOf), next: next && copyOf(next) };
    });

  const write = (act: () => Outcome, brings: "the item" | "nothing"): Promise<Written> =>
    settled(() => {
      const outcome = act();
      if (!outcome.applied) return { ...outcome, seen: outcome.seen && copyOf(outcome.seen) };
      const item = brings === "the item" && outcome.item ? copyOf(outcome.item) : {};
      return { applied: true, item };
    });

  const updates =
    (brings: "the item" | "nothing"): Table["update"] =>
    (Key, change) =>
      write(
        () => operations.update(sentRequest({ Key: sentItem(Key), ...expressions(change) })),
        brings,
      );

  return {
    read,
    query,
    items: itemsOf(query),
    readAll: (keys) =>
      settled(() =>
        keys.flatMap((Key) => {
          const item = operations.get({ Key: sentItem(Key), ConsistentRead: false });
          return item ? [copyOf(item)] : [];
        }),
      ),
    put: async (item) => {
      await write(() => operations.put({ Item: sentItem(item) }), "nothing");
    },
    putIf: (item, change) =>
      write(
        () => operations.put(sentRequest({ Item: sentItem(item), ...expressions(change) })),
        "nothing",
      ),
    update: updates("the item"),
    change: updates("nothing"),
    putAll: (items) =>
      settled(() => {
        for (const item of items) operations.put({ Item: sentItem(item) });
      }),
    deleteAll: (keys) =>
      settled(() => {
        for (const { pk, sk } of keys) operations.delete({ Key: { pk, sk } });
      }),
    deleteIf: ({ pk, sk }, change) =>
      write(
        () => operations.delete(sentRequest({ Key: { pk, sk }, ...expressions(change) })),
        "nothing",
      ),
  };
};

/** With values of its own. */
const sentRequest = <Request extends Pick<QueryRequest, "ExpressionAttributeValues">>(
  request: Request,
): Request => {
  const { ExpressionAttributeValues: values } = request;
  return values ? { ...request, ExpressionAttributeValues: sentItem(values) } : request;
};

/** A mistake is never taken for a table that doesn't answer, as the SDK's own refusals of a document are. */
const settled = async <T>(act: () => T): Promise<T> => {
  try {
    return act();
  } catch (cause) {
    throw new StoreRefusedError(`The simulated table refuses a request: ${String(cause)}`, {
      cause,
    });
  }
};
