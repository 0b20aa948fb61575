/** Items, and expressions about them that often mean something. */
import fc from "fast-check";
import type { Change } from "../../../lib/store/dynamodb/expressions.ts";
import type { Item } from "../../../lib/store/dynamodb/table.ts";

const anyNumber = fc.integer({ min: -1, max: 3 });
const anyText = fc.constantFrom("", "a", "ab", "b", "é", "\u{e000}", "😀");
const anyBytes = fc.uint8Array({ maxLength: 2, max: 3 });
const anyFlat = fc.oneof(anyNumber, anyText, anyBytes, fc.boolean(), fc.constant(null));

const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { arbitrary: anyFlat, weight: 3 },
    { arbitrary: fc.array(tie("value"), { maxLength: 3 }), weight: 2 },
    { arbitrary: fc.dictionary(fc.constantFrom("x", "y"), tie("value")), weight: 2 },
  ),
}));

const anyList = fc.array(anyValue, { maxLength: 3 });
const anyMap = fc.dictionary(fc.constantFrom("x", "y"), anyValue);

const attributes = {
  a: anyValue,
  b: anyValue,
  n: anyNumber,
  m: anyNumber,
  l: anyList,
  k: anyMap,
  t: anyText,
};

/** Some attributes have a type that expressions can rely on, if they are there. */
export const anyItem: fc.Arbitrary<Item> = fc.oneof(
  { arbitrary: fc.record(attributes), weight: 2 },
  fc.record(attributes, { requiredKeys: [] }),
);

export const anyValues: fc.Arbitrary<Item> = fc.record({
  v: anyValue,
  n: anyNumber,
  o: anyNumber,
  t: anyText,
  b: anyBytes,
  l: anyList,
});

const anyName = fc.constantFrom("#a", "#b", "#n", "#m", "#l", "#k", "#t");
const anyStep = fc.constantFrom(".#x", ".#y", "[0]", "[1]", "[4]");

const anyPath = fc.oneof(
  { arbitrary: anyName, weight: 4 },
  { arbitrary: fc.constantFrom("#k.#x", "#k.#y", "#l[0]", "#l[1]", "#l[2]", "#l[4]"), weight: 3 },
  fc.tuple(anyName, anyStep).map((steps) => steps.join("")),
  fc.tuple(anyName, anyStep, anyStep).map((steps) => steps.join("")),
);

const anyTerm = fc.oneof(anyPath, fc.constantFrom(":v", ":n", ":o", ":t", ":b", ":l"));

const anyOperand = fc.oneof(
  { arbitrary: anyTerm, weight: 4 },
  anyPath.map((path) => `size(${path})`),
);

const anyComparator = fc.constantFrom("=", "<>", "<", "<=", ">", ">=");

const anyPredicate = fc.oneof(
  fc.tuple(anyOperand, anyComparator, anyOperand).map((parts) => parts.join(" ")),
  fc.tuple(anyOperand, anyOperand, anyOperand).map(([of, a, b]) => `${of} BETWEEN ${a} AND ${b}`),
  fc.tuple(anyTerm, anyTerm).map(([of, prefix]) => `begins_with(${of}, ${prefix})`),
  anyPath.map((path) => `attribute_exists(${path})`),
  anyPath.map((path) => `attribute_not_exists(${path})`),
);

export const { condition: anyCondition } = fc.letrec<{ condition: string }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { arbitrary: anyPredicate, weight: 3 },
    fc.tuple(tie("condition"), tie("condition")).map(([a, b]) => `(${a} AND ${b})`),
    fc.tuple(tie("condition"), tie("condition")).map(([a, b]) => `(${a} OR ${b})`),
    fc.tuple(tie("condition"), tie("condition")).map(([a, b]) => `(NOT ${a} AND ${b})`),
    tie("condition").map((condition) => `NOT ${condition}`),
  ),
}));

const anyDefault = fc.tuple(anyPath, anyTerm).map((of) => `if_not_exists(${of.join(", ")})`);

const anyAddend = fc.oneof(
  fc.constantFrom(":n", ":o", "#n", "#m"),
  fc.constantFrom("if_not_exists(#n, :n)", "if_not_exists(#k.#x, #m)", "#l[0]", ":v"),
);

const anyPart = fc.constantFrom("#l", ":l", "if_not_exists(#l, :l)", "#k.#x", ":v");

const anySource = fc.oneof(
  { arbitrary: anyTerm, weight: 2 },
  anyDefault,
  fc.tuple(anyAddend, fc.constantFrom("+", "-"), anyAddend).map((parts) => parts.join(" ")),
  fc.tuple(anyPart, anyPart).map((parts) => `list_append(${parts.join(", ")})`),
);

const anyAssignment = fc.tuple(anyPath, anySource).map((parts) => parts.join(" = "));

/** Two paths of one attribute often can't stand in one update. */
const anyUpdate = fc.tuple(
  fc.uniqueArray(anyAssignment, { maxLength: 3, selector: (text) => text.slice(0, 5) }),
  fc.uniqueArray(anyPath, { maxLength: 2, selector: (text) => text.slice(0, 5) }),
  fc.integer({ max: 3, min: 0 }),
);

export const anyChange: fc.Arbitrary<Change> = fc
  .tuple(anyUpdate, anyValues, anyCondition)
  .map(([[set, remove, kind], values, condition]) => ({
    set,
    remove,
    values,
    condition: [kind === 0 ? condition : "attribute_exists(#pk)"],
  }));
