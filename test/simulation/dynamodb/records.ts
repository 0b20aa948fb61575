/** The items of a table in the order of their keys, and the states that each was in before. */
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { orderOfText } from "./documents.ts";

export interface Records {
  /** Those of one partition, or of all. The ones that are deleted are among them, for their older states. */
  in(partition?: string): readonly Entry[];
  find(key: Key): Entry | undefined;
  /** Undefined deletes it. */
  set(key: Key, item: Item | undefined): void;
}

export interface Key {
  readonly partition: string;
  readonly sort: string;
}

export interface Entry {
  readonly key: Key;
  /** The newest first; undefined where it wasn't there. Each of them stays as it is. */
  readonly states: readonly (Item | undefined)[];
}

/** More than a replica lags behind in practice. */
const MAX_STATES = 9;

export const createRecords = (): Records => {
  const partitions = new Map<string, Partition>();

  const partitionOf = (name: string): Partition => {
    const partition = partitions.get(name) ?? { sorted: [], byKey: new Map<string, Written>() };
    partitions.set(name, partition);
    return partition;
  };

  const create = (key: Key): Written => {
    const { sorted, byKey } = partitionOf(key.partition);
    const entry: Written = { key, states: [undefined] };
    byKey.set(key.sort, entry);
    const after = sorted.findIndex((other) => orderOfText(other.key.sort, key.sort) > 0);
    sorted.splice(after < 0 ? sorted.length : after, 0, entry);
    return entry;
  };

  return {
    in: (name) =>
      name === undefined
        ? partitions
            .values()
            .flatMap(({ sorted }) => sorted)
            .toArray()
        : (partitions.get(name)?.sorted ?? []),
    find: ({ partition, sort }) => partitions.get(partition)?.byKey.get(sort),
    set: (key, item) => {
      const entry = partitions.get(key.partition)?.byKey.get(key.sort);
      if (!entry && !item) return;
      const { states } = entry ?? create(key);
      states.unshift(item);
      if (states.length > MAX_STATES) states.pop();
    },
  };
};

interface Partition {
  readonly sorted: Written[];
  readonly byKey: Map<string, Written>;
}

interface Written extends Entry {
  readonly states: (Item | undefined)[];
}
