import { describe, expect, test } from "vitest";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { StoreRefusedError } from "../../../lib/store/errors.ts";
import { simulatedTable } from "../table.ts";

const KEY = { pk: "p", sk: "s" };

const THERE = { condition: ["attribute_exists(#pk)"] };

const counted = (n: number) => ({ ...THERE, set: ["#n = :n"], values: { n } });

const partition = {
  KeyConditionExpression: "#pk = :pk",
  ExpressionAttributeNames: { "#pk": "pk" },
  ExpressionAttributeValues: { ":pk": "p" },
};

describe("documents", () => {
  /** Changes everything that can be changed in it. */
  const spoil = (item: Item | undefined): void => {
    const { list, map, bytes } = item as {
      list: unknown[];
      map: Record<string, unknown>;
      bytes: Uint8Array;
    };
    list.push("spoiled");
    map["spoiled"] = true;
    bytes[0] = 99;
  };

  const fresh = (): Item => ({
    ...KEY,
    list: [1, [2]],
    map: { x: {} },
    bytes: Uint8Array.of(1, 2),
  });

  test("that were given don't change what is stored", async () => {
    const table = simulatedTable().asTable();
    const [put, putIf, batch] = [fresh(), { ...fresh(), sk: "2" }, { ...fresh(), sk: "3" }];
    await table.put(put);
    await table.putIf(putIf, { condition: ["attribute_not_exists(#pk)"] });
    await table.putAll([batch]);
    const value = fresh();
    await table.update(
      { pk: "p", sk: "4" },
      {
        condition: ["attribute_not_exists(#pk)"],
        set: ["#list = :list", "#map = :map", "#bytes = :bytes"],
        values: value,
      },
    );
    for (const item of [put, putIf, batch, value]) spoil(item);
    const { items } = await table.query(partition);
    expect(items).toEqual(["s", "2", "3", "4"].toSorted().map((sk) => ({ ...fresh(), sk })));
  });

  test("that were answered don't change what is stored", async () => {
    const simulated = simulatedTable();
    const table = simulated.asTable();
    await table.put(fresh());
    const updated = await table.update(KEY, { ...THERE, remove: ["#gone"] });
    const refused = await table.change(KEY, { condition: ["attribute_not_exists(#pk)"] });
    spoil(updated.applied ? updated.item : undefined);
    spoil(refused.applied ? undefined : refused.seen);
    spoil(await table.read(KEY));
    for (const item of (await table.query(partition)).items) spoil(item);
    for (const item of await table.readAll([KEY])) spoil(item);
    for (const item of simulated.items()) spoil(item);
    expect(await table.read(KEY)).toEqual(fresh());
  });

  test("leave out what is undefined, as the SDK does", async () => {
    const table = simulatedTable().asTable();
    await table.put({ ...KEY, nothing: undefined });
    expect(await table.read(KEY)).toEqual(KEY);
  });

  test.each<[string, unknown]>([
    ["what is undefined further in", { x: undefined }],
    ["an undefined element", [undefined]],
    ["a date", new Date(0)],
    ["a number that isn't whole", 1.5],
    ["a number that isn't safe", 2 ** 60],
    ["no number", Number.NaN],
    ["a function", () => 1],
    ["a bigint", 1n],
  ])("with %s are refused", async (_what, value) => {
    const table = simulatedTable().asTable();
    await expect(table.put({ ...KEY, value })).rejects.toThrow(StoreRefusedError);
    const change = { ...THERE, set: ["#a = :value"], values: { value } };
    await expect(table.update(KEY, change)).rejects.toThrow(StoreRefusedError);
    expect(await table.read(KEY)).toBeUndefined();
  });
});

describe("what a write answers", () => {
  test("is the item as it then is for an update, and nothing of it for the others", async () => {
    const table = simulatedTable().asTable();
    const absent = { condition: ["attribute_not_exists(#pk)"] };
    expect(await table.putIf({ ...KEY, n: 1 }, absent)).toEqual({ applied: true, item: {} });
    expect(await table.update(KEY, counted(2))).toEqual({ applied: true, item: { ...KEY, n: 2 } });
    expect(await table.change(KEY, counted(3))).toEqual({ applied: true, item: {} });
    expect(await table.putIf(KEY, absent)).toEqual({ applied: false, seen: { ...KEY, n: 3 } });
    expect(await table.deleteIf({ ...KEY, n: 1 }, THERE)).toEqual({ applied: true, item: {} });
    expect(await table.deleteIf(KEY, THERE)).toEqual({ applied: false, seen: undefined });
  });
});

describe("a read that needn't be consistent", () => {
  test("shows an item as it was so many writes ago, or before it was there", async () => {
    let ago = 0;
    const table = simulatedTable({ staleness: () => ago }).asTable();
    const numbers = async (): Promise<unknown[]> => {
      const reads: (Item | undefined)[] = [];
      for (ago of [0, 1, 2, 3, 4, 5]) reads.push(await table.read(KEY, false));
      return reads.map((item) => item?.["n"]);
    };
    await table.put({ ...KEY, n: 1 });
    await table.change(KEY, counted(2));
    await table.deleteIf(KEY, THERE);
    await table.put({ ...KEY, n: 4 });
    expect(await numbers()).toEqual([4, undefined, 2, 1, undefined, undefined]);
    expect(await table.read(KEY)).toEqual({ ...KEY, n: 4 });
  });

  test("of many items shows each in a state of its own", async () => {
    const states = [0, 1, 0];
    const table = simulatedTable({ staleness: () => states.shift() ?? 0 }).asTable();
    const keys = ["1", "2", "3"].map((sk) => ({ pk: "p", sk }));
    await table.putAll(keys);
    const stale = await table.query(partition);
    expect(stale.items.map(({ sk }) => sk)).toEqual(["1", "3"]);
    states.push(1, 0, 1);
    expect((await table.readAll(keys)).map(({ sk }) => sk)).toEqual(["2"]);
    const fresh = await table.query({ ...partition, ConsistentRead: true });
    expect(fresh.items).toHaveLength(3);
  });

  test("of an index is never consistent", async () => {
    let ago = 0;
    const table = simulatedTable({ staleness: () => ago }).asTable();
    await table.put({ ...KEY, owner: "ann", created_key: "1" });
    const byOwner = {
      IndexName: "by_owner",
      KeyConditionExpression: "#owner = :owner",
      ExpressionAttributeNames: { "#owner": "owner" },
      ExpressionAttributeValues: { ":owner": "ann" },
    };
    expect((await table.query(byOwner)).items).toHaveLength(1);
    ago = 1;
    expect((await table.query(byOwner)).items).toHaveLength(0);
  });
});

test("a page holds no more items than the test allows", async () => {
  const table = simulatedTable({ pageSize: 2 }).asTable();
  await table.putAll(["1", "2", "3"].map((sk) => ({ pk: "p", sk })));
  const first = await table.query(partition);
  expect(first).toEqual({
    items: [
      { pk: "p", sk: "1" },
      { pk: "p", sk: "2" },
    ],
    next: { pk: "p", sk: "2" },
  });
  expect(await Array.fromAsync(table.items(partition))).toHaveLength(3);
});

test("an item that expires is gone, and seen by none but a stale read", async () => {
  const simulated = simulatedTable({ staleness: () => 1 });
  const table = simulated.asTable();
  await table.put({ ...KEY, n: 1 });
  simulated.expire(KEY);
  expect(simulated.items()).toEqual([]);
  expect(await table.read(KEY)).toBeUndefined();
  expect(await table.read(KEY, false)).toEqual({ ...KEY, n: 1 });
});

test("names that every object has are those of no attribute", async () => {
  const table = simulatedTable().asTable();
  await table.put({ ...KEY, recent: {} });
  for (const name of ["constructor", "toString", "hasOwnProperty"]) {
    const change = { condition: ["attribute_not_exists(#recent.#name)"], names: { name } };
    expect(await table.change(KEY, change)).toMatchObject({ applied: true });
  }
});
