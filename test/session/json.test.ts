import { deepStrictEqual } from "node:assert";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  kindOf,
  MAX_JSON_DEPTH,
  parseJson,
  toJsonObject,
  toJsonValue,
} from "../../lib/session/json.ts";
import { anyJson } from "./arbitraries.ts";
import { faultOf } from "./fault.ts";

const nested = (levels: number): unknown =>
  Array.from({ length: levels }).reduce<unknown>((inner) => [inner], "core");

describe("a value from outside", () => {
  class Private {
    #field = 1;
    read() {
      return this.#field;
    }
  }
  class Bound {
    data = 1;
    read = () => this.data;
  }
  const refused: readonly (readonly [title: string, value: unknown, fault: string])[] = [
    ["C03 a Date", new Date(0), "an instance of Date can't be written as JSON"],
    ["C03 an Error", new Error("boom"), "an instance of Error can't be written as JSON"],
    [
      "C03 a class with only private fields",
      new Private(),
      "an instance of Private can't be written as JSON",
    ],
    ["C03 a Map", new Map([["a", 1]]), "an instance of Map can't be written as JSON"],
    ["C03 a Set", new Set([1]), "an instance of Set can't be written as JSON"],
    ["C03 a RegExp", /x/, "an instance of RegExp can't be written as JSON"],
    ["C03 a boxed string", Object("text"), "an instance of String can't be written as JSON"],
    [
      "C03 an instance of a nameless class",
      new (class {})(),
      "an instance of a class can't be written as JSON",
    ],
    [
      "C04 an instance with a bound method",
      new Bound(),
      "an instance of Bound can't be written as JSON",
    ],
    ["C04 a function", () => 1, "a function can't be written as JSON"],
    ["C06 a BigInt", 5n, "a bigint can't be written as JSON"],
    ["C06 NaN", Number.NaN, "NaN can't be written as JSON"],
    ["C06 Infinity", Number.POSITIVE_INFINITY, "Infinity can't be written as JSON"],
    ["C06 -Infinity", Number.NEGATIVE_INFINITY, "-Infinity can't be written as JSON"],
    [
      "C08 a Uint8Array",
      new Uint8Array([1, 2]),
      "an instance of Uint8Array can't be written as JSON",
    ],
    ["C08 a Buffer", Buffer.from("ab"), "an instance of Buffer can't be written as JSON"],
    [
      "C08 an ArrayBuffer",
      new ArrayBuffer(2),
      "an instance of ArrayBuffer can't be written as JSON",
    ],
    ["a symbol", Symbol("s"), "a symbol can't be written as JSON"],
    ["a promise", Promise.resolve(1), "an instance of Promise can't be written as JSON"],
    ["a key with a lone surrogate", { "\ud800": 1 }, "has a key with a lone surrogate"],
    ["a symbol as a key", { [Symbol("s")]: 1 }, "has a symbol as a key"],
    [
      "an array with a name of its own",
      Object.assign([1], { index: 0 }),
      "has properties besides its items",
    ],
    [
      "an object that writes itself",
      { toJSON: 1, x: new Date(0) },
      "an instance of Date can't be written as JSON",
    ],
  ];
  test.each(refused)(
    "%s is refused with its path, not made into something else",
    (_title, value, message) => {
      expect(faultOf(() => toJsonValue({ list: [0, { "the key": value }] }, "metadata"))).toMatch(
        /^metadata\.list\[1\]\["the key"\](\.x)?: /,
      );
      expect(faultOf(() => toJsonValue({ list: [0, { "the key": value }] }))).toContain(
        `: ${message}`,
      );
    },
  );

  test("undefined and holes in an array are refused: JSON would make them null", () => {
    expect(faultOf(() => toJsonValue([1, undefined]))).toBe(
      "[1]: undefined can't be written as JSON",
    );
    expect(faultOf(() => toJsonValue(Array(3)))).toBe("[0]: undefined can't be written as JSON");
    expect(faultOf(() => toJsonValue(undefined, "result"))).toBe(
      "result: undefined can't be written as JSON",
    );
  });

  test("C02 a property that is undefined is absent, and the rest is kept", () => {
    expect(Object.entries(toJsonObject({ title: undefined, kept: null }))).toEqual([
      ["kept", null],
    ]);
  });

  test("C06 -0 becomes 0, which equals it", () => {
    expect(toJsonValue({ b: -0 })).toStrictEqual({ b: 0 });
    expect(toJsonValue([-0, -0.5])).toStrictEqual([0, -0.5]);
  });

  test('C07 "" stays "", as a value and as a key', () => {
    expect(toJsonValue({ "": "", list: [""] })).toStrictEqual({ "": "", list: [""] });
  });

  test("C18 __proto__ is kept as data of its own, and nothing is inherited", () => {
    const text = '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1.0e0}}}';
    for (const value of [toJsonObject(JSON.parse(text)), parseJson(text)]) {
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
      expect(Object.keys(value ?? {})).toEqual(["__proto__", "constructor"]);
      expect(JSON.stringify(value)).toBe(
        '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}',
      );
      expect(value).not.toHaveProperty("admin");
    }
    expect({}).not.toHaveProperty("admin");
    expect({}).not.toHaveProperty("x");
  });

  test(`C19 ${MAX_JSON_DEPTH} levels are kept, one more is refused with its path`, () => {
    for (const levels of [28, 32, 40, MAX_JSON_DEPTH]) {
      expect(toJsonValue(nested(levels))).toEqual(nested(levels));
    }
    const path = `result${"[0]".repeat(MAX_JSON_DEPTH)}`;
    expect(faultOf(() => toJsonValue(nested(MAX_JSON_DEPTH + 1), "result"))).toBe(
      `${path}: is nested deeper than ${MAX_JSON_DEPTH} levels`,
    );
    expect(faultOf(() => toJsonObject({ a: nested(MAX_JSON_DEPTH) }))).toContain(
      "is nested deeper than",
    );
  });

  test("a value that holds itself is refused as too deep, at once", () => {
    const loop: Record<string, unknown> = {};
    loop["self"] = loop;
    loop["again"] = [loop];
    expect(faultOf(() => toJsonValue(loop, "metadata"))).toBe(
      `metadata${".self".repeat(MAX_JSON_DEPTH)}: is nested deeper than ${MAX_JSON_DEPTH} levels`,
    );
  });

  test("a value met twice is not a cycle, and the copies are apart", () => {
    const shared = { n: 1 };
    const copy = toJsonObject({ a: shared, b: shared });
    expect(copy).toEqual({ a: { n: 1 }, b: { n: 1 } });
    expect(copy["a"]).not.toBe(copy["b"]);
    expect(copy["a"]).not.toBe(shared);
  });

  test("text is made well-formed, and text that is stays to the letter", () => {
    expect(toJsonValue(["a\ud800b", "\udc00", "😀\ud83d"])).toEqual([
      "a\ufffdb",
      "\ufffd",
      "😀\ufffd",
    ]);
    expect(toJsonValue("né😀\u0000\u2028")).toBe("né😀\u0000\u2028");
  });

  test("an object without a prototype is an object, one from another realm is not", () => {
    expect(toJsonValue(Object.assign(Object.create(null), { a: 1 }))).toStrictEqual({ a: 1 });
    expect(faultOf(() => toJsonValue(runInNewContext("({ a: 1 })")))).toContain(
      "an instance of Object",
    );
  });

  test.each([
    [null, "null"],
    [undefined, "undefined"],
    [[], "an array"],
    ["text", "a string"],
    [new Date(0), "an instance of Date"],
  ])("where an object is wanted, %o is refused as %s", (value, kind) => {
    expect(faultOf(() => toJsonObject(value, "metadata"))).toBe(
      `metadata: must be an object, not ${kind}`,
    );
    expect(kindOf(value)).toBe(kind);
  });

  test("any JSON value is copied to an equal one", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        deepStrictEqual(toJsonValue(value), value);
      }),
    );
  });
});
