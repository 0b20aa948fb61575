/** Open turns on DynamoDB: where their contents lie, and what becomes of those. */
import { describe, expect, test } from "vitest";
import { encodeStep } from "../../lib/store/codec.ts";
import { contentBytes, encodeContent } from "../../lib/store/dynamodb/content.ts";
import { AFTER_HEAD_SECONDS, MAX_ITEM_BYTES } from "../../lib/store/dynamodb/table.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines } from "../support/dynamodb.ts";
import { commitOf, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
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
import { large, openPieces } from "./pieces.ts";

/** Of content in HEAD. */
const INLINE_BYTES = 1024;

/** Of content in an item of its own. */
const PIECE_BYTES = MAX_ITEM_BYTES - 2500;

describe.each(dynamoEngines())("open turns on $name", ({ endpoint }) => {
  test("HEAD stays under 4 KB with eight steps whose results are 5 MB together", async () => {
    const { store, another, itemOf } = await openPieces(endpoint);
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
    const { store, sent } = await openPieces(endpoint);
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
      const { store, another, itemOf, besides } = await openPieces(endpoint);
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
      const { store, another, itemOf, besides } = await openPieces(endpoint);
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
      const { store, another, besides } = await openPieces(endpoint);
      const bytes = count * PIECE_BYTES + offset;
      const result = textOf(bytes, (text) => JSON.stringify([text]));
      const it = await keep(store, await running(store), { steps: [step(result)] });
      expect(await besides(keyOf(it))).toHaveLength(items);
      expect(await another().openTurn(it)).toMatchObject({ steps: [step(result)] });
    },
  );

  test("what lies beside HEAD lives a day longer than HEAD", async () => {
    const { store, besides } = await openPieces(endpoint);
    const it = await large(store);
    const items = await besides(keyOf(it));
    expect(items).toHaveLength(3);
    const expiresAt = it.expiresAtSeconds + AFTER_HEAD_SECONDS;
    expect(items.map(({ expires_at }) => expires_at)).toEqual([expiresAt, expiresAt, expiresAt]);
  });

  test("an eventually consistent read that misses a piece is made again consistently", async () => {
    const { store, counted } = await openPieces(endpoint);
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

  test("a purge removes the pieces of its incarnation, and none of its namesake's", async () => {
    const { store, besides } = await openPieces(endpoint);
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
    const { store, itemOf, besides } = await openPieces(endpoint);
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
});

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
