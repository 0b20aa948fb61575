/** Open turns on DynamoDB: where their contents lie, what becomes of those, and what is wrong with them. */
import { DeleteCommand, GetCommand, PutCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { encodeStep } from "../../lib/store/codec.ts";
import { contentBytes, encodeContent } from "../../lib/store/dynamodb/content.ts";
import { encodeHead } from "../../lib/store/dynamodb/item.ts";
import { headKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { AFTER_HEAD_SECONDS, type Item, MAX_ITEM_BYTES } from "../../lib/store/dynamodb/table.ts";
import { DamagedSessionError } from "../../lib/store/errors.ts";
import { partitionKey } from "../../lib/store/keys.ts";
import type { Head, SessionKey, SessionStore } from "../../lib/store/store.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { claimOn, commitOf, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import { sizeOf } from "./item-size.ts";
import {
  claimOf,
  headOf,
  heldBy,
  keep,
  keyOf,
  noise,
  running,
  step,
  stepWith,
} from "./open-turns.ts";

/** Of content in HEAD. */
const INLINE_BYTES = 1024;

/** Of content in an item of its own. */
const PIECE_BYTES = MAX_ITEM_BYTES - 2500;

describe.each(dynamoEngines())("open turns on $name", ({ endpoint }) => {
  const open = async () => {
    const { client, tableName } = await freshTable(endpoint);
    const { client: counted, sent } = faultyClient(endpoint, () => undefined);
    const itemOf = async (key: SessionKey): Promise<Item> => {
      const Key = headKey(key);
      const { Item: item = {} } = await client.send(new GetCommand({ TableName: tableName, Key }));
      return item;
    };
    /** Whatever lies beside HEAD, in the order of its keys. */
    const besides = async (key: SessionKey, prefix = ""): Promise<Item[]> => {
      const { Items: items = [] } = await client.send(
        new QueryCommand({
          TableName: tableName,
          KeyConditionExpression: "pk = :pk",
          ExpressionAttributeValues: { ":pk": partitionKey(key) },
          ConsistentRead: true,
        }),
      );
      return items.filter(({ sk }) => sk !== "HEAD" && String(sk).startsWith(prefix));
    };
    const remove = async (item: Item | undefined): Promise<void> => {
      const Key = { pk: item?.["pk"], sk: item?.["sk"] };
      await client.send(new DeleteCommand({ TableName: tableName, Key }));
    };
    const put = async (item: Item): Promise<void> => {
      await client.send(new PutCommand({ TableName: tableName, Item: item }));
    };
    const another = () => dynamoSessionStore({ client: counted, tableName });
    return {
      store: another(),
      another,
      client,
      counted,
      tableName,
      sent,
      itemOf,
      besides,
      remove,
      put,
    };
  };

  /** A turn with a large input, a large step and large results. */
  const large = async (store: SessionStore): Promise<Head> => {
    const it = await running(store, {}, { open: openTurn({ input: noise(9000) }) });
    await store.saveInput(it, noise(9000));
    const asked = await keep(store, it, { steps: [step(null), stepWith(noise(9000, 2), [])] });
    return keep(store, asked, { step: 0, results: [noise(9000, 3)] });
  };

  test("HEAD stays under 4 KB with eight steps whose results are 5 MB together", async () => {
    const { store, another, itemOf } = await open();
    let it = await running(store, {}, { open: openTurn({ input: noise(256 * 1024) }) });
    const results = Array.from({ length: 8 }, (_, n) => noise(640_000, n));
    const steps = results.map((result) => step(result, "ok"));
    for (const [n, result] of results.entries()) {
      it = await keep(store, it, { steps: [step(null, null)] });
      it = await keep(store, it, { step: n, results: [result, "ok"] });
      expect(sizeOf(await itemOf(it))).toBeLessThan(4096);
    }
    await store.saveInput(it, noise(256 * 1024));
    expect(await another().openTurn(it)).toMatchObject({ steps, input: noise(256 * 1024) });
  }, 60_000);

  test("a small input costs no request, and a small step no more than one", async () => {
    const { store, sent } = await open();
    const it = await running(store);
    const before = sent.length;
    await store.saveInput(it, "hello");
    expect(sent).toHaveLength(before);
    await store.checkpoint({
      ...heldBy(it),
      head: it,
      revision: 0,
      kept: { steps: [step("x")] },
      untilMs: NOW_MS + 60_000,
    });
    expect(sent).toHaveLength(before + 1);
  });

  describe.each([-1, 0, 1])("content of the inline bound and %i bytes", (offset) => {
    const bytes = INLINE_BYTES + offset;

    test("lies in HEAD, or beside it if it is larger: a step and its results", async () => {
      const { store, another, itemOf, besides } = await open();
      const said = stepWith(
        textOf(bytes, (text) => encodeStep(stepWith(text, []))),
        [],
      );
      const returned = step(textOf(bytes, (text) => JSON.stringify([text])));
      const it = await keep(store, await running(store), { steps: [said, returned] });
      const after = await keep(store, it, { step: 1, results: returned.results });
      expect(await another().openTurn(after)).toMatchObject({ steps: [said, returned] });
      const isInline = offset <= 0;
      const named = expect.objectContaining({ n: 1 });
      expect(await itemOf(it)).toMatchObject({
        open: {
          k: [
            { m: isInline ? expect.any(Uint8Array) : named },
            { x: isInline ? expect.any(Uint8Array) : named },
          ],
        },
      });
      expect(await besides(keyOf(it))).toHaveLength(isInline ? 0 : 3);
    });

    test("lies in HEAD, or beside it if it is larger: an input", async () => {
      const { store, another, itemOf, besides } = await open();
      const input = textOf(bytes, (text) => text);
      const it = await running(store, {}, { open: openTurn({ input }) });
      await store.saveInput(it, input);
      expect(await another().openTurn(it)).toMatchObject({ input, steps: [] });
      const isInline = offset <= 0;
      expect(it.open?.input === input).toBe(isInline);
      expect(await itemOf(it)).toMatchObject({
        open: isInline ? { i: expect.any(Uint8Array) } : { i: input.slice(0, 300), n: 1 },
      });
      expect(await besides(keyOf(it))).toHaveLength(isInline ? 0 : 1);
    });
  });

  test.each([
    [1, -1, 1],
    [1, 0, 1],
    [1, 1, 2],
    [2, 0, 2],
    [2, 1, 3],
  ])(
    "content of %i pieces and %i bytes lies in %i items, and is exact",
    async (count, offset, items) => {
      const { store, another, besides } = await open();
      const bytes = count * PIECE_BYTES + offset;
      const result = textOf(bytes, (text) => JSON.stringify([text]));
      const it = await keep(store, await running(store), { steps: [step(result)] });
      expect(await besides(keyOf(it))).toHaveLength(items);
      expect(await another().openTurn(it)).toMatchObject({ steps: [step(result)] });
    },
  );

  test("what lies beside HEAD lives a day longer than HEAD", async () => {
    const { store, besides } = await open();
    const it = await large(store);
    const items = await besides(keyOf(it));
    expect(items).toHaveLength(3);
    const expiresAt = it.expiresAtSeconds + AFTER_HEAD_SECONDS;
    expect(items.map(({ expires_at }) => expires_at)).toEqual([expiresAt, expiresAt, expiresAt]);
  });

  test("an eventually consistent read that misses a piece is made again consistently", async () => {
    const { store, counted } = await open();
    const it = await large(store);
    const whole = await store.openTurn(it);
    const isConsistent: unknown[] = [];
    counted.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        const { input } = args;
        if (!("Key" in input) || JSON.stringify(input.Key).includes("HEAD")) return result;
        const consistent = "ConsistentRead" in input && input.ConsistentRead;
        isConsistent.push(consistent);
        if (!consistent) Object.assign(result.output, { Item: undefined });
        return result;
      },
      { step: "initialize" },
    );
    expect(await store.openTurn(it)).toEqual(whole);
    expect(isConsistent.filter((each) => each === true)).toHaveLength(3);
    expect(isConsistent.filter((each) => each === false)).toHaveLength(3);
  });

  test("a look at a turn whose runner died before it stored the input is a typed error, and the next try stores it", async () => {
    const { store } = await open();
    const input = noise(9000);
    const it = await running(store, {}, { open: openTurn({ input }) });
    await expectDamaged(store.openTurn(it), it, /i#.* is missing/);
    await store.saveInput(it, input);
    expect(await store.openTurn(it)).toMatchObject({ input });
  });

  test("a piece that is missing or cut is a typed error, and nothing is guessed in its place", async () => {
    const { store, another, besides, remove, put } = await open();
    const it = await large(store);
    const whole = await store.openTurn(it);
    for (const item of await besides(keyOf(it))) {
      await remove(item);
      await expectDamaged(another().openTurn(it), it, /is missing/);
      const data = item["data"];
      if (!(data instanceof Uint8Array)) throw new Error("a piece has no data");
      await put({ ...item, data: data.subarray(0, data.length / 2) });
      await expectDamaged(another().openTurn(it), it, /can't be decompressed/);
      await put({ ...item, data: "text" });
      await expectDamaged(another().openTurn(it), it, /is missing/);
      await put(item);
    }
    expect(await another().openTurn(it)).toEqual(whole);
  });

  test("a purge removes the pieces of its incarnation, and none of its namesake's", async () => {
    const { store, besides } = await open();
    const it = await large(store);
    await store.delete({ ...heldBy(it), nowMs: NOW_MS });
    const over = await headOf(store, keyOf(it));
    const next = head(keyOf(it));
    await store.create({ head: next, over, nowMs: NOW_MS });
    const input = noise(9000);
    const again = await claimOf(store, keyOf(it), { open: openTurn({ input }) });
    await store.saveInput(again, input);
    expect(await besides(keyOf(it), "O#")).toHaveLength(4);

    await store.purge({ key: keyOf(it), incarnation: it.incarnation });
    expect(await besides(keyOf(it))).toHaveLength(1);
    expect(await store.openTurn(again)).toMatchObject({ input });
  });

  test("a fork and an import have nothing of the open turn", async () => {
    const { store, itemOf, besides } = await open();
    const clock = settableClock(NOW_MS);
    const sessions = createSessions({ store, clock });
    const first = await running(store);
    await store.commit(commitOf(first));
    const at = await claimOf(store, keyOf(first), {
      open: openTurn({ turnId: "turn-2", input: noise(9000) }),
    });
    await store.saveInput(at, noise(9000));
    await keep(store, at, { steps: [stepWith(noise(9000), [])] });
    expect(await besides(keyOf(at))).toHaveLength(2);

    const fork = await sessions.fork(keyOf(at));
    const snapshot = (await sessions.export(await sessions.read(keyOf(at)))).snapshot();
    const copy = { owner: at.owner, sessionId: hex() };
    await sessions.import(copy, { ...snapshot, session_id: copy.sessionId });
    for (const key of [keyOf(fork), copy]) {
      expect(await besides(key)).toEqual([]);
      const item = await itemOf(key);
      expect(item).toMatchObject({ turn_count: 1 });
      expect(item).not.toHaveProperty("open");
      expect(item).not.toHaveProperty("claim");
    }
  });

  const call = '"tool_calls":[{"id":"a","name":"look","arguments":{}}]';
  const sound = { m: `{"role":"assistant","content":"",${call},"usage":[1,2]}` };
  const damages: [string, Item, RegExp][] = [
    ["a step that is text", { k: ["step"] }, /open\.k\[0\]: must be a map, not a string/],
    ["a step without a message", { k: [{}] }, /open\.k\[0\]\.m: must be a map, not undefined/],
    [
      "a message cut short",
      { k: [sound, { m: '{"role":"assi' }] },
      /open\.k\[1\]\.m: isn't valid JSON/,
    ],
    ["a message that is none", { k: [{ m: "[]" }] }, /open\.k\[0\]\.m: must be an object/],
    [
      "an unknown role",
      { k: [{ m: '{"role":"robot","content":"","usage":[0,0]}' }] },
      /open\.k\[0\]\.m\.role/,
    ],
    [
      "a step without usage",
      { k: [{ m: '{"role":"assistant","content":""}' }] },
      /open\.k\[0\]\.m\.usage/,
    ],
    [
      "an unknown field",
      { k: [{ m: '{"role":"assistant","content":"","x":1,"usage":[0,0]}' }] },
      /open\.k\[0\]\.m\.x/,
    ],
    [
      "bytes of an unknown encoding",
      { k: [{ m: Uint8Array.of(9, 1) }] },
      /open\.k\[0\]\.m: has the unknown encoding 9/,
    ],
    [
      "bytes cut short",
      { k: [{ ...sound, x: Uint8Array.of(1, 139, 2) }] },
      /open\.k\[0\]\.x: can't be decompressed/,
    ],
    ["results cut short", { k: [{ ...sound, x: '["a' }] }, /open\.k\[0\]\.x: isn't valid JSON/],
    [
      "results that are no list",
      { k: [{ ...sound, x: "{}" }] },
      /open\.k\[0\]\.x: must be an array/,
    ],
    [
      "a result that is a number",
      { k: [{ ...sound, x: "[5]" }] },
      /open\.k\[0\]\.x\[0\]: must be text or null/,
    ],
    [
      "a result too many",
      { k: [{ ...sound, x: '["a","b"]' }] },
      /open\.k\[0\]\.x: has 2 results for 1 tool call/,
    ],
    [
      "a result too few",
      { k: [{ ...sound, x: "[]" }] },
      /open\.k\[0\]\.x: has 0 results for 1 tool call/,
    ],
    [
      "a name without a number",
      { k: [{ m: { p: "s0.0#a" } }] },
      /open\.k\[0\]\.m\.n: must be a number/,
    ],
    ["a number without a name", { k: [{ m: { n: 1 } }] }, /open\.k\[0\]\.m\.p: must be text/],
    ["no piece at all", { k: [{ m: { p: "s0.0#a", n: 0 } }] }, /s0\.0#a: can't have 0 pieces/],
    [
      "pieces without end",
      { k: [{ m: { p: "s0.0#a", n: 1e12 } }] },
      /s0\.0#a: can't have 1000000000000 pieces/,
    ],
    ["pieces that nobody wrote", { k: [{ m: { p: "s0.0#a", n: 3 } }] }, /s0\.0#a is missing/],
    ["a number of the input's pieces that is none", { n: "2" }, /open\.n: must be a number/],
  ];
  test.each(damages)(
    "C16: %s is a typed error that names the place",
    async (_what, fields, place) => {
      const { store, put } = await open();
      const it = head({ claim: claimOn(keyOf(head())).claim, open: openTurn() });
      const item = encodeHead(it);
      const stored: unknown = item["open"];
      if (typeof stored !== "object") throw new Error("there is no open turn");
      await put({ ...item, open: { ...stored, ...fields } });
      await expectDamaged(store.openTurn(await headOf(store, keyOf(it))), it, place);
    },
  );
});

/** Every such error says whose it is. */
const expectDamaged = async (read: Promise<unknown>, it: Head, place: RegExp): Promise<void> => {
  const error = await read.catch((each: unknown) => each);
  expect(error).toBeInstanceOf(DamagedSessionError);
  const where = `session ${it.sessionId}, open turn ${it.open?.turnId}: `;
  expect(String(error)).toContain(where);
  expect(String(error)).toMatch(place);
};

/** Text with which the JSON becomes content of just so many bytes. */
const textOf = (bytes: number, jsonOf: (text: string) => string): string => {
  for (let seed = 1; seed < 100; seed++) {
    const pool = noise(bytes * 2, seed);
    let length = Math.floor(bytes * 1.3);
    for (let tries = 0; tries < 20; tries++) {
      const text = pool.slice(0, length);
      const missing = bytes - contentBytes(encodeContent(jsonOf(text)));
      if (missing === 0) return text;
      length += Math.sign(missing) * Math.ceil(Math.abs(missing) * 1.2);
    }
  }
  throw new Error(`no text makes content of ${bytes} bytes`);
};
