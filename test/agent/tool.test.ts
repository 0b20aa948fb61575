import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type Tool, tool } from "../../lib/agent/tool.ts";
import { anyObject, resultOf } from "./parts.ts";

const running = (run: () => unknown): Tool =>
  tool({ name: "it", description: "", parameters: anyObject, run });

describe("what a tool returns", () => {
  class Account {
    balance = 1;
  }
  test.each<[title: string, value: unknown, result: string]>([
    ["text", "as it is", "as it is"],
    ['C07 ""', "", ""],
    ["a lone surrogate", "a\ud800", "a\ufffd"],
    ["nothing", undefined, ""],
    ["null", null, "null"],
    ["a number", 1.5, "1.5"],
    ["C06 -0", -0, "0"],
    ["a boolean", false, "false"],
    ["an object", { b: 1, a: [null, "x"] }, '{"b":1,"a":[null,"x"]}'],
    ["a lone surrogate in an object", ["\ud800"], '["\ufffd"]'],
    ["C02 a property that is undefined", { a: undefined, b: 1 }, '{"b":1}'],
    ["a promise", Promise.resolve({ a: 1 }), '{"a":1}'],
    [
      "C03 a Date",
      { at: [new Date(0)] },
      "error: result.at[0]: an instance of Date can't be written as JSON",
    ],
    [
      "C03 an Error",
      { error: new Error("boom") },
      "error: result.error: an instance of Error can't be written as JSON",
    ],
    [
      "C04 an instance of a class",
      new Account(),
      "error: result: an instance of Account can't be written as JSON",
    ],
    [
      "C04 a function",
      { a: { read: () => 1 } },
      "error: result.a.read: a function can't be written as JSON",
    ],
    ["C06 a BigInt", [5n], "error: result[0]: a bigint can't be written as JSON"],
    ["C06 NaN", Number.NaN, "error: result: NaN can't be written as JSON"],
    [
      "C08 bytes",
      { data: new Uint8Array([1, 2]) },
      "error: result.data: an instance of Uint8Array can't be written as JSON",
    ],
  ])("%s becomes its result", async (_title, value, result) => {
    expect(await resultOf(running(() => value))).toBe(result);
    expect(await resultOf(running(async () => value))).toBe(result);
  });

  test("C19 nested too deep becomes an error result", async () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(await resultOf(running(() => loop))).toMatch(
      /^error: result(\[0\])+: is nested deeper than/,
    );
  });

  test.each<[title: string, thrown: unknown, result: string]>([
    ["an Error", new Error("boom"), "error: boom"],
    ["an Error with a lone surrogate", new Error("a\ud800"), "error: a\ufffd"],
    ["text", "boom", "error: boom"],
    ["a number", 42, "error: a number was thrown"],
    ["undefined", undefined, "error: undefined was thrown"],
    ["null", null, "error: null was thrown"],
    ["a symbol", Symbol("s"), "error: a symbol was thrown"],
    ["an object", { code: 5 }, "error: an object was thrown"],
    ["an object that can't be text", Object.create(null), "error: an object was thrown"],
  ])("%s that it throws becomes an error result", async (_title, thrown, result) => {
    const fail = () => {
      throw thrown;
    };
    expect(await resultOf(running(fail))).toBe(result);
    expect(await resultOf(running(async () => fail()))).toBe(result);
  });
});

describe("a definition", () => {
  const good = { name: "it", description: "", parameters: anyObject, run: () => "" };

  test('has the effect "once" unless it says otherwise', () => {
    expect(tool(good).effect).toBe("once");
    expect(tool({ ...good, effect: "none" }).effect).toBe("none");
  });

  test.each(["a", "get-weather_2", "__proto__", "x".repeat(64)])("may be named %s", (name) => {
    expect(tool({ ...good, name }).spec.name).toBe(name);
  });

  test.each<[title: string, change: unknown, message: RegExp]>([
    ["no name", { name: undefined }, /^tool name undefined must be 1 to 64 letters/],
    ["an empty name", { name: "" }, /^tool name "" must be/],
    ["a name of 65 letters", { name: "x".repeat(65) }, /must be 1 to 64 letters/],
    ["a name with a dot", { name: "a.b" }, /must be 1 to 64 letters/],
    ["a name with a line end", { name: "a\n" }, /must be 1 to 64 letters/],
    ["no description", { description: undefined }, /^tool it: description must be a string/],
    ["no run", { run: undefined }, /^tool it: run must be a function/],
    [
      "an unknown effect",
      { effect: "twice" },
      /^tool it: effect must be "none", "idempotent" or "once"/,
    ],
    [
      "no parameters",
      { parameters: undefined },
      /^tool it: no JSON Schema .*must be an object, not undefined/,
    ],
    ["parameters that are text", { parameters: "{}" }, /must be an object, not a string/],
    [
      "C03 a Date in its schema",
      { parameters: { type: "object", default: new Date(0) } },
      /default: an instance of Date/,
    ],
    [
      "a zod schema that JSON Schema can't tell",
      { parameters: z.object({ at: z.date() }) },
      /Date cannot be represented/,
    ],
    [
      "a JSON Schema that isn't one",
      { parameters: z.object({}), jsonSchema: "{}" },
      /must be an object, not a string/,
    ],
  ])("with %s is a TypeError", (_title, change, message) => {
    const define = () => tool({ ...good, ...(change as object) });
    expect(define).toThrow(TypeError);
    expect(define).toThrow(message);
  });
});
