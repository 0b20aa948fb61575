import { isAlive } from "../head.ts";
import { partitionKey } from "../keys.ts";
import type { ListPage, ListRequest } from "../store.ts";
import { decodeHead } from "./item.ts";
import { HEAD } from "./keys.ts";
import type { Table } from "./requests.ts";
import { TABLE } from "./table.ts";

/** Each of 1 MB of the index: some ten thousand sessions. */
const MAX_EMPTY_PAGES = 4;

/**
 * Reads a page of the owner's index, newest first, and then the HEADs that it names: the index holds
 * only what no turn changes. Those that are gone by then are left out.
 */
export const listSessions = async (table: Table, request: ListRequest): Promise<ListPage> => {
  const { owner, limit, after, nowMs } = request;
  const query = {
    IndexName: TABLE.indexes.byOwner,
    KeyConditionExpression:
      after === undefined ? "#owner = :owner" : "#owner = :owner AND #created_key < :after",
    // The owner's index is read newest first, and the expired ones are the oldest.
    FilterExpression: "#expires_at > :now",
    ExpressionAttributeNames: {
      "#owner": "owner",
      "#expires_at": TABLE.ttlAttribute,
      ...(after === undefined ? {} : { "#created_key": "created_key" }),
    },
    ExpressionAttributeValues: {
      ":owner": owner,
      ":now": Math.floor(nowMs / 1000),
      ...(after === undefined ? {} : { ":after": after }),
    },
    ScanIndexForward: false,
  };
  let page = await table.query({ ...query, Limit: limit });
  // A page of expired sessions only, which cleanup hasn't come to yet, is nothing to answer with.
  for (let tries = 0; page.items.length === 0 && page.next && tries < MAX_EMPTY_PAGES; tries++) {
    page = await table.query({ ...query, ExclusiveStartKey: page.next });
  }
  const entries = page.items.slice(0, limit);
  const keys = entries.map(({ session_id }) => ({
    pk: partitionKey({ owner, sessionId: String(session_id) }),
    sk: HEAD,
  }));
  const heads = new Map((await table.readAll(keys)).map((item) => [item["pk"], decodeHead(item)]));
  const last = page.items.length > limit ? entries.at(-1) : page.next;
  const next = last?.["created_key"];
  return {
    heads: keys.flatMap(({ pk }) => heads.get(pk) ?? []).filter((head) => isAlive(head, nowMs)),
    ...(typeof next === "string" ? { next } : {}),
  };
};
