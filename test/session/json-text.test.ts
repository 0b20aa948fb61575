import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import { MAX_JSON_DEPTH, parseJson } from "../../lib/session/json.ts";
import { anyJson } from "./arbitraries.ts";
import { faultOf } from "./fault.ts";

describe("JSON text", () => {
  const exact: readonly (readonly [literal: string, value: number])[] = [
    ["0", 0],
    ["-0", 0],
    ["-0.0e7", 0],
    ["1.0", 1],
    ["1E2", 100],
    ["1e+2", 100],
    ["100e-2", 1],
    ["0.1", 0.1],
    ["1e-07", 1e-7],
    ["3.141592653589793", Math.PI],
    ["0.30000000000000004", 0.1 + 0.2],
    ["9007199254740991", Number.MAX_SAFE_INTEGER],
    ["9007199254740992", 2 ** 53],
    ["-9007199254740994", -(2 ** 53) - 2],
    ["123456789012345680000", 123456789012345680000],
    ["1000000000000000000000", 1e21],
    ["1.7976931348623157e308", Number.MAX_VALUE],
    ["5e-324", Number.MIN_VALUE],
    ["0.1000000000000000000000000000", 0.1],
    ["0e999999999999", 0],
  ];
  test.each(exact)("holds the number %s exactly", (literal, value) => {
    expect(parseJson(literal)).toBe(value);
    expect(parseJson(`{"a":[${literal}]}`)).toStrictEqual({ a: [value] });
  });

  test.each([
    "9007199254740993",
    "-9007199254740993",
    "9007199254740993.5",
    "9007199254740993.0",
    "123456789012345678901",
    "100000000000000000000000",
    "0.1000000000000000055511151231257827",
    "3.14159265358979312",
    "1e999",
    "-1e999",
    "1e-400",
    "0.00000000000000012345678901234567891",
    "2e-324",
  ])("C06 refuses the number %s with its path: a double would round it", (literal) => {
    const message = `${literal} can't be held exactly as a number: send it as a string`;
    expect(faultOf(() => parseJson(`{"ids":[1,{"n":${literal}}]}`))).toBe(`ids[1].n: ${message}`);
    expect(faultOf(() => parseJson(literal))).toBe(`: ${message}`);
  });

  test("numbers inside of strings are text", () => {
    const text = '{"9007199254740993":"9007199254740993 and 1e999"}';
    expect(parseJson(text)).toStrictEqual({ "9007199254740993": "9007199254740993 and 1e999" });
  });

  test.each([
    ["zeros between two digits", `1${"0".repeat(1_000_000)}1`],
    ["digits of an exponent", `1e${"9".repeat(1_000_000)}`],
    ["digits of a fraction", `0.${"3".repeat(1_000_000)}`],
  ])("a number with a million %s is refused without reading them all out", (_title, literal) => {
    const fault = faultOf(() => parseJson(`[${literal}]`));
    expect(fault).toBe(
      `[0]: ${literal.slice(0, 40)}… can't be held exactly as a number: send it as a string`,
    );
  });

  test.each([
    "",
    " ",
    "{",
    "undefined",
    "NaN",
    "01",
    "1.",
    "'a'",
    '{"a":1,}',
    "\ufeff{}",
    "[1e5",
    "1e",
  ])("%o isn't JSON, and the parser's error is the cause", (text) => {
    const parse = () => parseJson(text);
    expect(parse).toThrow(InvalidInputError);
    expect(faultOf(parse)).toBe(": isn't valid JSON");
    expect(parse).toThrow(expect.objectContaining({ cause: expect.any(SyntaxError) }));
  });

  test.each(["1", "1e5", "1234567890123456789"])(
    "C19 text a hundred thousand levels deep around %s is refused as too deep, not as invalid",
    (core) => {
      const text = "[".repeat(100_000) + core + "]".repeat(100_000);
      expect(faultOf(() => parseJson(text))).toContain(
        `is nested deeper than ${MAX_JSON_DEPTH} levels`,
      );
    },
  );

  test("any JSON value comes back from its text", () => {
    fc.assert(
      fc.property(anyJson, (value) => {
        deepStrictEqual(parseJson(JSON.stringify(value)), value);
      }),
      { numRuns: 1000 },
    );
  });

  test("any finite double comes back from its text", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(parseJson(JSON.stringify(value))).toBe(value === 0 ? 0 : value);
      }),
      { numRuns: 2000 },
    );
  });

  test("any decimal is held where the double's own text is the same number, and refused otherwise", () => {
    const digits = (maxLength: number) => fc.stringMatching(/^[0-9]*$/, { maxLength });
    const anyDecimal = fc
      .record({
        sign: fc.constantFrom("", "-"),
        whole: digits(22).map((text) => text.replace(/^0+/, "") || "0"),
        fraction: fc.option(
          digits(22).map((text) => `.${text}0`),
          { nil: "" },
        ),
        exponent: fc.option(
          fc.tuple(fc.constantFrom("e", "E", "e+", "e-"), fc.integer({ min: 0, max: 340 })),
          { nil: [] },
        ),
      })
      .map(({ sign, whole, fraction, exponent }) => sign + whole + fraction + exponent.join(""));
    const seen = { held: 0, refused: 0 };
    fc.assert(
      fc.property(anyDecimal, (literal) => {
        const isHeld = faultOf(() => parseJson(literal)) === "none";
        const value = Number(literal);
        expect(isHeld).toBe(Number.isFinite(value) && isSameNumber(literal, String(value)));
        if (isHeld) expect(parseJson(literal)).toBe(value === 0 ? 0 : value);
        seen[isHeld ? "held" : "refused"]++;
      }),
      { numRuns: 2000 },
    );
    expect(Math.min(seen.held, seen.refused)).toBeGreaterThan(100);
  });
});

/** Compares two decimals as whole numbers of the smaller of their last places. */
const isSameNumber = (a: string, b: string): boolean => {
  const scaled = [a, b].map((literal) => {
    const [mantissa = "", exponent = "0"] = literal.toLowerCase().split("e");
    const [whole = "", fraction = ""] = mantissa.split(".");
    return {
      units: BigInt(whole.replace("-", "") + fraction),
      place: Number(exponent) - fraction.length,
      minus: whole.startsWith("-"),
    };
  });
  const lowest = Math.min(...scaled.map(({ place }) => place));
  const [first, second] = scaled.map(
    ({ units, place, minus }) => (minus ? -1n : 1n) * units * 10n ** BigInt(place - lowest),
  );
  return first === second;
};
