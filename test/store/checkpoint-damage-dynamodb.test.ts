/** Open turns on DynamoDB of which something is missing, cut or wrong. */
import { describe, expect, test } from "vitest";
import { encodeHead } from "../../lib/store/dynamodb/item.ts";
import type { Item } from "../../lib/store/dynamodb/table.ts";
import { DamagedSessionError } from "../../lib/store/errors.ts";
import type { Head } from "../../lib/store/head.ts";
import { dynamoEngines } from "../support/dynamodb.ts";
import { claimOn, head, openTurn } from "../support/heads.ts";
import { headOf, keyOf, noise, running } from "./open-turns.ts";
import { large, openPieces } from "./pieces.ts";

describe.each(dynamoEngines())("open turns on $name", ({ endpoint }) => {
  test("a look at a turn whose runner died before it stored the input is a typed error, and the next try stores it", async () => {
    const { store } = await openPieces(endpoint);
    const input = noise(9000);
    const it = await running(store, {}, { open: openTurn({ input }) });
    await expectDamaged(store.openTurn(it), it, /i#.* is missing/);
    await store.saveInput(it, input);
    expect(await store.openTurn(it)).toMatchObject({ input });
  });

  test("a piece that is missing or cut is a typed error, and nothing is guessed in its place", async () => {
    const { store, another, besides, remove, put } = await openPieces(endpoint);
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
      const { store, put } = await openPieces(endpoint);
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
