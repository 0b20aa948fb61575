/** Any table, as a process sees it over a network on which things go wrong. */
import { itemsOf, type Table, type Written } from "../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { type Attempt, attempts, type Call, FAULTS, type Fault, type Network } from "./attempts.ts";
import { copyOf } from "./dynamodb/documents.ts";
import type { Process, Scheduler } from "./scheduler.ts";

export interface FaultOptions {
  /** Of attempts that something happens to, from 0 to 1. */
  readonly rate: number;
  /** How often each fault comes, beside the others. 1 by default. */
  readonly weights?: Partial<Record<Exclude<Fault, "none">, number>>;
  /** Refusals come without the item, which is read then: as from an engine that doesn't send it. */
  readonly withoutItem?: boolean;
  /** Of what an answer holds, for the trace. */
  readonly digest?: (content: unknown) => string;
}

export const CALM: FaultOptions = { rate: 0 };

export const STORMY: FaultOptions = { rate: 0.4, weights: { kill: 0.3, pause: 0.5 } };

/** Shared by the tables of all processes. */
export interface Faults extends FaultOptions {
  readonly network: Network;
  /** What happened, in this order. The same on two engines means that they do the same. */
  readonly trace: readonly Attempt[];
}

export const createFaults = (
  scheduler: Scheduler,
  options: FaultOptions,
  trace: Attempt[] = [],
): Faults => {
  const [, ...all] = FAULTS;
  const oddsOf = (kinds: readonly (typeof all)[number][]): number[] => {
    const weights = kinds.map((kind) => options.weights?.[kind] ?? 1);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return [1 - options.rate, ...weights.map((weight) => (options.rate * weight) / sum)];
  };
  const isCalm = options.rate === 0;
  const network = {
    scheduler,
    carrier: scheduler.process("network"),
    odds: isCalm ? [1] : oddsOf(all.slice(0, -1)),
    batchOdds: isCalm ? [1] : oddsOf(all),
    trace,
  };
  return { ...options, network, trace };
};

export const faultyTable = (table: Table, process: Process, faults: Faults): Table => {
  const { network, withoutItem = false, digest } = faults;
  const told = (what: string, content: unknown): string =>
    digest ? `${what} ${digest(content)}` : what;

  const call = <T>(it: Call<T>): Promise<T> => attempts(it, process, network);

  const read: Table["read"] = (key, consistent = true) =>
    call({
      op: "read",
      key: nameOf(key),
      send: () => table.read(key, consistent),
      tell: (item) => (item ? told("found", item) : "nothing"),
    });

  const query: Table["query"] = (input) =>
    call({
      op: "query",
      key: [input.IndexName, ...Object.values(input.ExpressionAttributeValues ?? {})].join(" "),
      send: () => table.query(input),
      tell: (page) => told(`${page.items.length}${page.next ? "+" : ""} items`, page),
    });

  const write = async (
    op: "putIf" | "update" | "change" | "deleteIf",
    key: Item,
    send: () => Promise<Written>,
  ): Promise<Written> => {
    const written = await call({
      op,
      key: nameOf(key),
      isWrite: true,
      send,
      tell: (it) =>
        it.applied ? told("applied", it.item) : told("refused", withoutItem ? "" : it.seen),
    });
    if (written.applied || (written.seen && !withoutItem)) return written;
    // The store's own table reads what it isn't told; here others may come in between.
    return { applied: false, seen: await read({ pk: key["pk"], sk: key["sk"] }) };
  };

  const batch = async (
    op: "putAll" | "deleteAll",
    all: readonly Item[],
    write: (items: readonly Item[]) => Promise<void>,
  ): Promise<void> => {
    // A map's order is the engine's own, and may be where the batch comes from.
    const sorted = all.toSorted(byName);
    for (let at = 0; at < sorted.length; at += BATCH_SIZE) {
      const items = copyOf(sorted.slice(at, at + BATCH_SIZE));
      const middle = Math.ceil(items.length / 2);
      await call({
        op,
        key: items.map(nameOf).join(" "),
        isWrite: true,
        send: () => write(items),
        tell: () => "done",
        ...(items.length > 1
          ? { parts: [() => write(items.slice(0, middle)), () => write(items.slice(middle))] }
          : {}),
      });
    }
  };

  return {
    read,
    query,
    items: itemsOf(query),
    readAll: async (keys) => {
      if (keys.length === 0) return [];
      return call({
        op: "readAll",
        key: keys.map(nameOf).join(" "),
        send: () => table.readAll(keys),
        tell: (items) => told(`${items.length} items`, items.toSorted(byName)),
      });
    },
    put: (given) => {
      const item = copyOf(given);
      return call({
        op: "put",
        key: nameOf(item),
        isWrite: true,
        send: () => table.put(item),
        tell: () => "done",
      });
    },
    putIf: (...given) => {
      const [item, change] = copyOf(given);
      return write("putIf", item, () => table.putIf(item, change));
    },
    update: (...given) => {
      const [key, change] = copyOf(given);
      return write("update", key, () => table.update(key, change));
    },
    change: (...given) => {
      const [key, change] = copyOf(given);
      return write("change", key, () => table.change(key, change));
    },
    deleteIf: (...given) => {
      const [item, change] = copyOf(given);
      return write("deleteIf", item, () => table.deleteIf(item, change));
    },
    putAll: (items) => batch("putAll", items, table.putAll),
    deleteAll: (keys) => batch("deleteAll", keys, table.deleteAll),
  };
};

/** As the store's own. */
const BATCH_SIZE = 25;

const nameOf = ({ pk, sk }: Item): string => `${String(pk)} ${String(sk)}`;

const byName = (a: Item, b: Item): number => (nameOf(a) < nameOf(b) ? -1 : 1);
