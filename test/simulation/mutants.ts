/**
 * The protocol with something taken out, one thing at a time. Each is wrong in a way of its own, and
 * the simulation has to show it. Where a mutant can't be killed, what it takes out isn't needed.
 */
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import type { Head } from "../../lib/store/head.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { Mutant } from "./simulate.ts";
import { kindOf, WEAKENED } from "./weakened.ts";

const isSegment = ({ sk }: Item): boolean => String(sk).startsWith("S#");
const isRecord = ({ sk }: Item): boolean => String(sk).startsWith("T#");

const withSeen = <Result extends { readonly applied: boolean }>(
  result: Result,
  change: (seen: Head) => Head | undefined,
): Result => {
  const { seen } = result as { seen?: Head };
  return result.applied || !seen ? result : { ...result, seen: change(seen) };
};

const onStore = (
  change: (store: SessionStore) => Partial<SessionStore>,
): Required<Pick<Mutant, "store">> => ({ store: (store) => ({ ...store, ...change(store) }) });

const onTable = (change: (table: Table) => Partial<Table>): Required<Pick<Mutant, "table">> => ({
  table: (table) => ({ ...table, ...change(table) }),
});

const without = (head: Head, ...fields: readonly ("claim" | "open")[]): Head =>
  Object.fromEntries(
    Object.entries(head).filter(([name]) => !fields.some((field) => field === name)),
  ) as unknown as Head;

const OTHERS: readonly Mutant[] = [
  {
    name: "a finished turn is recognised in HEAD",
    ...onStore((store) => ({
      claim: async (write) => withSeen(await store.claim(write), forgetful),
      takeOver: async (write) => withSeen(await store.takeOver(write), forgetful),
    })),
  },
  {
    name: "a finished turn is recognised in the index",
    ...onStore(() => ({ findTurn: async () => undefined })),
  },
  {
    name: "records in the index before they leave HEAD",
    ...onTable((table) => ({
      putAll: async (items) => table.putAll(items.filter((item) => !isRecord(item))),
    })),
  },
  {
    name: "the record of a turn that lost its place",
    ...onStore((store) => ({
      takeOver: ({ displaced: _displaced, ...write }) => store.takeOver(write),
    })),
  },
  {
    name: "the record of an abandoned turn in the index",
    ...onStore((store) => ({
      seal: (head) =>
        store.seal({
          ...head,
          recent: new Map([...head.recent].filter(([, it]) => it.outcome !== "abandoned")),
        }),
    })),
  },
  {
    name: "intent before effect",
    ...onStore((store) => ({
      checkpoint: async (write) => {
        if (!("steps" in write.kept)) return store.checkpoint(write);
        store.checkpoint(write).catch(() => {});
        return { applied: true };
      },
    })),
  },
  {
    name: "results before the next step",
    ...onStore((store) => ({
      checkpoint: async (write) =>
        "steps" in write.kept ? store.checkpoint(write) : { applied: true },
    })),
  },
  {
    name: "a checkpoint that was refused is looked at",
    ...onStore((store) => ({
      checkpoint: async (write) => {
        await store.checkpoint(write);
        return { applied: true };
      },
    })),
  },
  {
    name: "one's own claim is recognised",
    ...onStore((store) => ({
      claim: async (write) => withSeen(await store.claim(write), strange),
      takeOver: async (write) => withSeen(await store.takeOver(write), strange),
    })),
  },
  {
    name: "one's own commit is recognised",
    ...onStore((store) => ({
      commit: async (write) => withSeen(await store.commit(write), forgetful),
      read: async (key) => {
        const head = await store.read(key);
        return head && forgetful(head);
      },
    })),
  },
  {
    name: "a refused commit isn't taken for done",
    ...onStore((store) => ({
      commit: async (write) => {
        await store.commit(write);
        return { applied: true };
      },
    })),
  },
  {
    name: "segments are put if absent",
    ...onTable((table) => ({
      putIf: async (item, change) => {
        if (!isSegment(item)) return table.putIf(item, change);
        await table.put(item);
        return { applied: true, item: {} };
      },
    })),
  },
  {
    name: "the segment that stands is adopted",
    ...onTable((table) => ({
      putIf: async (item, change) => {
        const put = await table.putIf(item, change);
        return isSegment(item) ? { applied: true, item: {} } : put;
      },
    })),
  },
  {
    name: "segment before HEAD",
    ...onTable((table) => ({
      putIf: async (item, change) => {
        if (!isSegment(item)) return table.putIf(item, change);
        return { applied: true, item: {} };
      },
    })),
  },
  {
    name: "a segment outlives HEAD",
    ...onTable((table) => ({
      putIf: (item, change) => table.putIf(isSegment(item) ? expiringEarly(item) : item, change),
    })),
  },
  {
    name: "a tombstone stays of a deleted session",
    ...onTable((table) => ({
      change: async (key, change) => {
        if (kindOf(change) !== "delete") return table.change(key, change);
        const written = await table.change(key, change);
        if (written.applied) await table.deleteAll([key]);
        return written;
      },
    })),
  },
  {
    name: "keys carry the incarnation",
    ...onTable(namesakes),
  },
  {
    name: "an open turn with kept steps stays when its claim is released",
    ...onStore((store) => ({ release: (write) => store.release({ ...write, keepOpen: false }) })),
  },
  {
    name: "another's open turn isn't resumed as one's own",
    ...onStore((store) => ({
      claim: async (write) => withSeen(await store.claim(write), (seen) => without(seen, "open")),
    })),
  },
];

function forgetful(head: Head): Head {
  return { ...head, recent: new Map() };
}

function strange(head: Head): Head {
  return head.claim ? { ...head, claim: { ...head.claim, attempt: "f".repeat(32) } } : head;
}

function expiringEarly(item: Item): Item {
  return { ...item, expires_at: Number(item["expires_at"]) - 86_400 - 120 };
}

/** Segments and records of all lives of an id lie under the same keys. */
function namesakes(table: Table): Partial<Table> {
  const bare = (text: unknown): unknown =>
    typeof text === "string" ? text.replace(/^([STPO])#[\w-]{22}#/, "$1##") : text;
  const key = (item: Item): Item => ({ ...item, sk: bare(item["sk"]) });
  const input: (it: Parameters<Table["query"]>[0]) => Parameters<Table["query"]>[0] = (it) => ({
    ...it,
    ExpressionAttributeValues: Object.fromEntries(
      Object.entries(it.ExpressionAttributeValues ?? {}).map(([name, value]) => [
        name,
        bare(value),
      ]),
    ),
  });
  return {
    read: (it, consistent) => table.read(key(it), consistent),
    query: (it) => table.query(input(it)),
    items: (it) => table.items(input(it)),
    readAll: (keys) => table.readAll(keys.map(key)),
    put: (item) => table.put(key(item)),
    putIf: (item, change) => table.putIf(key(item), change),
    putAll: (items) => table.putAll(items.map(key)),
    deleteAll: (keys) => table.deleteAll(keys.map(key)),
    deleteIf: (item, change) => table.deleteIf(key(item), change),
  };
}

export const MUTANTS: readonly Mutant[] = [...WEAKENED, ...OTHERS];
