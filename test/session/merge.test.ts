import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject, JsonValue } from "../../lib/session/json.ts";
import { mergePatch } from "../../lib/session/merge.ts";

/** A patch of anything, as RFC 7396 has it: `mergePatch` takes objects, so both go into one. */
const patched = (target: JsonValue, patch: JsonValue): JsonObject =>
  mergePatch({ it: target }, { it: patch });

describe("a merge patch", () => {
  // Appendix A of RFC 7396.
  test.each<[target: JsonValue, patch: JsonValue, result: JsonValue]>([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("turns %j by %j into %j (RFC 7396)", (target, patch, result) => {
    expect(patched(target, patch)).toStrictEqual({ it: result });
  });

  test("of null removes, whatever stands there (RFC 7396)", () => {
    expect(patched({ a: "foo" }, null)).toStrictEqual({});
    expect(mergePatch({}, { never: null })).toStrictEqual({});
    // Only objects are merged: null in a list is a value.
    expect(mergePatch({ a: [1] }, { a: [null, { b: null }] })).toStrictEqual({
      a: [null, { b: null }],
    });
  });

  test("keeps the order of keys, and adds new ones behind", () => {
    const merged = mergePatch({ z: 1, y: { b: 1, a: 1 }, x: 1 }, { n: 1, y: { a: 2, c: 2 }, z: 2 });
    expect(JSON.stringify(merged)).toBe('{"z":2,"y":{"b":1,"a":2,"c":2},"x":1,"n":1}');
  });

  test("touches neither what it is given nor any prototype (C18)", () => {
    const hostile = '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"toString":1}';
    const target: JsonObject = JSON.parse('{"a":{"__proto__":{"old":1}}}');
    const patch: JsonObject = JSON.parse(`{"a":${hostile},"__proto__":{"admin":true}}`);
    const before = JSON.stringify([target, patch]);
    const merged = mergePatch(target, patch);
    expect(JSON.stringify(merged)).toBe(
      '{"a":{"__proto__":{"old":1,"admin":true},"constructor":{"prototype":{"x":1}},"toString":1},"__proto__":{"admin":true}}',
    );
    expect(JSON.stringify([target, patch])).toBe(before);
    expect(Object.getPrototypeOf(merged)).toBe(Object.prototype);
    expect(Reflect.get({}, "admin")).toBeUndefined();
    expect(Reflect.get({}, "x")).toBeUndefined();
  });

  test("merges into own keys only, never into what every object has (C18)", () => {
    const patch: JsonObject = JSON.parse('{"__proto__":{"a":1},"constructor":{"b":1}}');
    expect(JSON.stringify(mergePatch({}, patch))).toBe(
      '{"__proto__":{"a":1},"constructor":{"b":1}}',
    );
    const removal: JsonObject = JSON.parse('{"__proto__":null,"constructor":null}');
    expect(JSON.stringify(mergePatch(patch, removal))).toBe("{}");
  });

  test("may be applied again without effect", () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const key = fc.oneof(fc.constantFrom("a", "b", "__proto__"), fc.string());
    const object = fc.dictionary(key, value);
    fc.assert(
      fc.property(object, object, (target, patch) => {
        const once = mergePatch(target as JsonObject, patch as JsonObject);
        expect(mergePatch(once, patch as JsonObject)).toStrictEqual(once);
      }),
      { numRuns: 500 },
    );
  });
});
