import type { StandardSchemaV1 } from "@standard-schema/spec";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { tool } from "../../lib/agent/tool.ts";
import type { JsonValue } from "../../lib/session/json.ts";
import { anyObject, resultOf } from "./parts.ts";

describe("arguments checked by JSON Schema", () => {
  const seen: unknown[] = [];
  const book = tool({
    name: "book",
    description: "books seats",
    effect: "idempotent",
    parameters: {
      type: "object",
      properties: {
        seats: { type: "integer", minimum: 1 },
        guests: {
          type: "array",
          items: { type: "object", properties: { "full name": { type: "string" } } },
        },
        "a/b~c": { type: "boolean" },
      },
      required: ["seats"],
      additionalProperties: false,
    },
    run: (args) => {
      seen.push(args);
      return "booked";
    },
  });

  test("reach the tool as they are", async () => {
    seen.length = 0;
    const args = { seats: 2, guests: [{ "full name": "Ada", age: 36 }], "a/b~c": true };
    expect(await resultOf(book, args)).toBe("booked");
    expect(seen).toStrictEqual([args]);
  });

  test.each<[args: JsonValue, faults: RegExp]>([
    [{}, /^error: invalid arguments: .*required property "seats"/],
    [{ seats: 0 }, /seats: 0 is less than 1/],
    [{ seats: 1.5 }, /seats: Instance type "number" is invalid\. Expected "integer"/],
    [
      { seats: 1, guests: [{}, { "full name": 5 }] },
      /guests\[1\]\["full name"\]: Instance type "number"/,
    ],
    [{ seats: 1, "a/b~c": 5 }, /(^|; )\["a\/b~c"\]: Instance type "number"/],
    [{ seats: 1, extra: 1 }, /extra: False boolean schema/],
    [JSON.parse('{"seats":1,"__proto__":{"admin":true}}'), /__proto__/],
    ["", /^error: invalid arguments: they must be one JSON object, and were text: ""$/],
    ['{"seats":', /must be one JSON object, and were text: "\{\\"seats\\":"$/],
    ['```json\n{"seats":1}\n```', /were text: "```json/],
    ['{"seats":1}', /were text: "\{\\"seats\\":1\}"$/],
    [`"${"é".repeat(1000)}`, /were text: "\\"é{49}"$/],
    [null, /must be one JSON object, and were null$/],
    [[], /must be one JSON object, and were an array$/],
  ])(
    "C10 %j are an error result that names the fault, and the tool isn't run",
    async (args, faults) => {
      seen.length = 0;
      const result = await resultOf(book, args);
      expect(result).toMatch(/^error: invalid arguments: /);
      expect(result).toMatch(faults);
      expect(seen).toEqual([]);
    },
  );

  test("may have a schema that is frozen, and the tool keeps a copy of it", async () => {
    const schema = Object.freeze({ type: "object", required: Object.freeze(["a"]) });
    const frozen = tool({
      name: "f",
      description: "",
      parameters: schema as never,
      run: () => "ran",
    });
    expect(await resultOf(frozen, { a: 1 })).toBe("ran");
    expect(await resultOf(frozen, {})).toMatch(/^error: invalid arguments/);

    const open = { type: "object", required: ["a"] };
    const copied = tool({ name: "c", description: "", parameters: open, run: () => "ran" });
    open.required.push("b");
    expect(await resultOf(copied, { a: 1 })).toBe("ran");
    expect(copied.spec.parameters).toStrictEqual({ type: "object", required: ["a"] });
  });

  test("tell the model their schema", () => {
    expect(book.spec).toMatchObject({
      name: "book",
      description: "books seats",
      parameters: { type: "object", required: ["seats"], additionalProperties: false },
    });
    expect(book.effect).toBe("idempotent");
  });
});

describe("arguments checked by zod", () => {
  const measure = tool({
    name: "measure",
    description: "",
    parameters: z.object({
      word: z.string().transform((word) => word.length),
      rows: z.array(z.object({ n: z.number().default(7) })).optional(),
    }),
    run: ({ word, rows }) => ({ length: word, rows }),
  });

  test("reach the tool transformed, with their defaults", async () => {
    expect(await resultOf(measure, { word: "four", rows: [{}, { n: 1 }], extra: 1 })).toBe(
      '{"length":4,"rows":[{"n":7},{"n":1}]}',
    );
  });

  test("are an error result with the path of the fault", async () => {
    expect(await resultOf(measure, { word: "four", rows: [{}, { n: "x" }] })).toMatch(
      /^error: invalid arguments: rows\[1\]\.n: .*expected number/,
    );
    expect(await resultOf(measure, "four")).toMatch(
      /^error: invalid arguments: they must be one JSON object, and were text: "four"/,
    );
  });

  test("tell the model what goes in, as JSON Schema", () => {
    expect(measure.spec.parameters).toMatchObject({
      type: "object",
      properties: {
        word: { type: "string" },
        rows: { type: "array", items: { type: "object", properties: { n: { type: "number" } } } },
      },
      required: ["word"],
    });
  });

  test("may be checked asynchronously", async () => {
    const checked = tool({
      name: "checked",
      description: "",
      parameters: z
        .object({ id: z.string() })
        .refine(async ({ id }) => id === "known", { path: ["id"], message: "isn't known" }),
      run: ({ id }) => id,
    });
    expect(await resultOf(checked, { id: "known" })).toBe("known");
    expect(await resultOf(checked, { id: "other" })).toBe(
      "error: invalid arguments: id: isn't known",
    );
  });
});

describe("arguments checked by valibot", () => {
  const parameters = v.object({
    list: v.array(v.object({ n: v.pipe(v.string(), v.transform(Number)) })),
  });
  const jsonSchema = {
    type: "object",
    properties: { list: { type: "array" } },
    required: ["list"],
  };

  test("reach the tool transformed; the model is told the JSON Schema that is given", async () => {
    const sum = tool({
      name: "sum",
      description: "",
      parameters,
      jsonSchema,
      run: ({ list }) => list.reduce((total, { n }) => total + n, 0),
    });
    expect(sum.spec.parameters).toStrictEqual(jsonSchema);
    expect(await resultOf(sum, { list: [{ n: "1" }, { n: "2.5" }] })).toBe("3.5");
    expect(await resultOf(sum, { list: [{ n: "1" }, { n: 2 }] })).toMatch(
      /^error: invalid arguments: list\[1\]\.n: .*Expected string but received 2/,
    );
  });

  test("need a JSON Schema beside them, since valibot tells none", () => {
    expect(() => tool({ name: "sum", description: "", parameters, run: () => "" })).toThrow(
      new TypeError(
        "tool sum: no JSON Schema in parameters or jsonSchema: this valibot schema can't tell its own; give it as jsonSchema",
      ),
    );
  });
});

describe("arguments checked by any other Standard Schema", () => {
  const standard = (validate: StandardSchemaV1.Props["validate"]): StandardSchemaV1 =>
    Object.assign(() => "schemas may be functions", {
      "~standard": { version: 1 as const, vendor: "own", validate },
    });
  const checkedBy = (validate: StandardSchemaV1.Props["validate"]) =>
    tool({
      name: "own",
      description: "",
      parameters: standard(validate),
      jsonSchema: anyObject,
      run: (value) => ({ value }),
    });

  test("reach the tool as the schema gives them, at once or later", async () => {
    expect(
      await resultOf(
        checkedBy((value) => ({ value: [value] })),
        { a: 1 },
      ),
    ).toBe('{"value":[{"a":1}]}');
    expect(await resultOf(checkedBy(async () => ({ value: 7 })))).toBe('{"value":7}');
  });

  test("are an error result with every fault that it tells, with a path or without", async () => {
    const issues = [{ message: "is bad" }, { message: "is worse", path: ["a", { key: 0 }, "b c"] }];
    expect(await resultOf(checkedBy(() => ({ issues })))).toBe(
      'error: invalid arguments: is bad; a[0]["b c"]: is worse',
    );
  });

  test("are an error result where the check fails", async () => {
    const fail = () => {
      throw new Error("the directory is down");
    };
    expect(await resultOf(checkedBy(fail))).toBe("error: the directory is down");
    expect(await resultOf(checkedBy(async () => fail()))).toBe("error: the directory is down");
  });
});
