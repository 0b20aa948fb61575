import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModelReply, ToolSpec } from "../../lib/agent/model.ts";
import { demoModel } from "../../lib/models/demo.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";

type Arithmetic = Record<string, (a: number, b: number) => number | string>;

const arithmetic: Arithmetic = {
  add: (a, b) => a + b,
  subtract: (a, b) => a - b,
  multiply: (a, b) => a * b,
  divide: (a, b) => (b === 0 ? "error: division by zero" : a / b),
};

const specs = (tools: Arithmetic): ToolSpec[] =>
  Object.keys(tools).map((name) => ({ name, description: name, parameters: { type: "object" } }));

const quietly = { signal: new AbortController().signal, onText: () => {} };

const complete = (messages: readonly Message[], tools = arithmetic): Promise<ModelReply> =>
  demoModel().complete(messages, specs(tools), quietly);

interface Turn {
  readonly calls: string[];
  readonly text: string;
  readonly history: readonly Message[];
}

/** One turn as an agent runs it: the model, its tools, until it answers. */
const turn = async (history: readonly Message[], input: string, tools = arithmetic) => {
  const messages = [...history, userMessage(input)];
  const calls: string[] = [];
  for (;;) {
    const { message } = await complete(messages, tools);
    messages.push(message);
    const [call] = message.toolCalls;
    if (!call) return { calls, text: message.content, history: messages } satisfies Turn;
    const { a, b } = call.arguments as { a: number; b: number };
    calls.push(`${call.name}(${a}, ${b})`);
    messages.push(toolMessage(call.id, String(tools[call.name]?.(a, b))));
  }
};

const run = async (inputs: readonly string[], tools = arithmetic): Promise<Turn> => {
  let last: Turn = { calls: [], text: "", history: [] };
  for (const input of inputs) last = await turn(last.history, input, tools);
  return last;
};

/** The request, the calls made for it, the number in the answer. */
type Row = readonly [request: string, calls: string, result: string];

const english: readonly Row[] = [
  ["Add 2 and 3, then multiply the result by 4", "add(2, 3) multiply(5, 4)", "20"],
  ["add 2 and 3 and then multiply by 4.", "add(2, 3) multiply(5, 4)", "20"],
  ["Add 2 and 3. Now multiply that by four!", "add(2, 3) multiply(5, 4)", "20"],
  ["Please add 2, 3 and 4 together, thanks", "add(2, 3) add(5, 4)", "9"],
  ["add 5 to 10", "add(10, 5)", "15"],
  ["subtract 4 from 10 and divide by 2", "subtract(10, 4) divide(6, 2)", "3"],
  ["divide 10 by 4", "divide(10, 4)", "2.5"],
  ["multiply 2, 3 and 4", "multiply(2, 3) multiply(6, 4)", "24"],
  ["multiply the sum of 2 and 3 by 4", "add(2, 3) multiply(5, 4)", "20"],
  ["What is the product of 6 and 7?", "multiply(6, 7)", "42"],
  ["what is 12 times 3 minus 5?", "multiply(12, 3) subtract(36, 5)", "31"],
  ["how much is 2+3*4", "multiply(3, 4) add(2, 12)", "14"],
  ["what’s 7 divided by 2", "divide(7, 2)", "3.5"],
  ["2 plus 3, times 4", "add(2, 3) multiply(5, 4)", "20"],
  ["(2 + 3) × 4 = ?", "add(2, 3) multiply(5, 4)", "20"],
  ["2*3 + 4*5", "multiply(2, 3) multiply(4, 5) add(6, 20)", "26"],
  ["10 - 4 - 3", "subtract(10, 4) subtract(6, 3)", "3"],
  ["100 ÷ 5 / 2", "divide(100, 5) divide(20, 2)", "10"],
  ["2x3", "multiply(2, 3)", "6"],
  ["-5 + 3", "add(-5, 3)", "-2"],
  ["3 - -2", "subtract(3, -2)", "5"],
  ["3−2", "subtract(3, 2)", "1"],
  ["-(2 + 3) * 2", "add(2, 3) subtract(0, 5) multiply(-5, 2)", "-10"],
  ["negative two times 1.5", "multiply(-2, 1.5)", "-3"],
  [".5 + 1,000.25", "add(0.5, 1000.25)", "1000.75"],
  ["add 1,234,567 and 3", "add(1234567, 3)", "1234570"],
  ["twenty-one plus one hundred five", "add(21, 105)", "126"],
  ["add two hundred and three hundred", "add(200, 300)", "500"],
  ["two thousand minus a hundred", "subtract(2000, 100)", "1900"],
  ["2 + 3\nmultiply by 4", "add(2, 3) multiply(5, 4)", "20"],
  ["add 0.1 and 0.2", "add(0.1, 0.2)", "0.30000000000000004"],
];

const chinese: readonly Row[] = [
  ["先算 2+3，再把结果乘 4", "add(2, 3) multiply(5, 4)", "20"],
  ["10 减 4", "subtract(10, 4)", "6"],
  ["用 10 除以 4", "divide(10, 4)", "2.5"],
  ["3 乘以 5 再加 2", "multiply(3, 5) add(15, 2)", "17"],
  ["2 加 3 乘 4", "multiply(3, 4) add(2, 12)", "14"],
  ["2 加 3 再乘 4", "add(2, 3) multiply(5, 4)", "20"],
  ["十加五等于多少", "add(10, 5)", "15"],
  ["从 10 减去 4", "subtract(10, 4)", "6"],
  ["从 10 中减去 4，然后除以 2", "subtract(10, 4) divide(6, 2)", "3"],
  ["请问（２＋３）×４等于几？", "add(2, 3) multiply(5, 4)", "20"],
  ["３，０００加５", "add(3000, 5)", "3005"],
  ["把 2 和 3 相加，然后乘以 4。", "add(2, 3) multiply(5, 4)", "20"],
  ["10 与 4 的差是多少", "subtract(10, 4)", "6"],
  ["负五乘以三点五", "multiply(-5, 3.5)", "-17.5"],
  ["两千三加一百零五", "add(2300, 105)", "2405"],
  ["一万五除以三十", "divide(15000, 30)", "500"],
  ["二十三万零四十减两百五", "subtract(230040, 250)", "229790"],
];

describe("the demo model works out", () => {
  test.each(english)("%j by %s", async (request, calls, result) => {
    const turn = await run([request]);
    expect(turn.calls.join(" ")).toBe(calls);
    expect(turn.text).toBe(`The result is ${result}.`);
  });

  test.each(chinese)("%j by %s", async (request, calls, result) => {
    const turn = await run([request]);
    expect(turn.calls.join(" ")).toBe(calls);
    expect(turn.text).toBe(`结果是 ${result}。`);
  });
});

describe("the demo model goes on from the last result", () => {
  const rows: readonly (readonly [inputs: string[], calls: string, text: string])[] = [
    [["add 2 and 3", "now add 10"], "add(5, 10)", "The result is 15."],
    [["先算 2+3", "再加 10 是多少"], "add(5, 10)", "结果是 15。"],
    [["add 2 and 3", "把结果除以 2"], "divide(5, 2)", "结果是 2.5。"],
    [["add 2 and 3", "plus 5"], "add(5, 5)", "The result is 10."],
    [["add 2 and 3", "times 2 plus 1"], "multiply(5, 2) add(10, 1)", "The result is 11."],
    [["add 2 and 3", "and what is that times 2?"], "multiply(5, 2)", "The result is 10."],
    [["add 2 and 3", "subtract it from 10"], "subtract(10, 5)", "The result is 5."],
    [["add 2 and 3", "divide the last result by 2"], "divide(5, 2)", "The result is 2.5."],
    [["add 2 and 3", "hello", "now add 10"], "add(5, 10)", "The result is 15."],
    [["add 2 and 3", "now add 10", "now add 10"], "add(15, 10)", "The result is 25."],
    [["add 2 and 3", "what is 4 * 5?"], "multiply(4, 5)", "The result is 20."],
  ];

  test.each(rows)("%j", async (inputs, calls, text) => {
    const turn = await run(inputs);
    expect(turn.calls.join(" ")).toBe(calls);
    expect(turn.text).toBe(text);
  });

  test("found in its own answer where the tool results are out of sight", async () => {
    const history = [userMessage("…"), assistantMessage("结果是 -2.5。")];
    expect((await turn(history, "now add 10")).calls).toEqual(["add(-2.5, 10)"]);
  });

  test("and not from the result of a tool that isn't arithmetic", async () => {
    const weather = [
      assistantMessage("", [{ id: "w", name: "temperature", arguments: {} }]),
      toolMessage("w", "31"),
    ];
    const { history } = await run(["add 2 and 3"]);
    expect((await turn([...history, ...weather], "now add 10")).calls).toEqual(["add(5, 10)"]);
  });

  test.each([
    ["now add 10", "There is no earlier result"],
    ["再加 10 是多少", "前面还没有"],
  ])("and says so where there is none: %j", async (request, text) => {
    const turn = await run(["hello", request]);
    expect(turn.calls).toEqual([]);
    expect(turn.text).toContain(text);
  });

  test("and not from one older than a calculation that failed", async () => {
    const turn = await run(["add 2 and 3", "divide 1 by 0", "now add 10"]);
    expect(turn.calls).toEqual([]);
    expect(turn.text).toContain("There is no earlier result");
  });
});

describe("the demo model says what it can do, and calls nothing, where", () => {
  const rows: readonly (readonly [why: string, requests: readonly string[]])[] = [
    ["nothing is asked", ["", " ", "\n", "…", "?", "now", "please", "你好"]],
    ["it isn't arithmetic", ["hello", "What's the weather in Paris?", "今天天气怎么样？"]],
    ["there is no operation", ["5", "-5", "the result", "what is it?", "(((5)))", "十", "结果"]],
    [
      "a part isn't understood",
      ["add 2 and 3 apples", "don't add 2 and 3", "2 + 3 公里", "2+3 🙂"],
    ],
    [
      "an operand is missing",
      ["2 +", "multiply 4", "the sum of 5 + 1", "divide 10", "* *", "(2 + 3", "2 + 3)", "2 加"],
    ],
    ["a number isn't plain", ["2,3 + 1", "0,500 + 1", "1.2.3 + 1", "1e5 + 1", "0x10", "5% + 1"]],
    ["a sign changes the meaning", ["3² + 1", "2^3", "2**3", "3 + 5!", "2(3)", "½ + 1"]],
    ["Chinese numerals are odd", ["二三加一", "百加一", "一百零加一", "一亿加一", "三分之一加一"]],
    ["English numerals are odd", ["one two plus 3", "ten-five + 1", "add one hundred and five"]],
    [
      "it can be read in two ways",
      [
        "add 2, 3",
        "2 plus 3 and it times 4",
        "multiply 2 by 3 plus 4",
        "add 2 and 3 * 4",
        "- 5 + 3",
      ],
    ],
    ["the order is turned around", ["multiply by 4, first add 2", "10 除 2"]],
    ["two results are asked for", ["2+3; 4+5", "add 2 and 3, then add 4 and 5", "2+3，100 乘 2"]],
    ["a verb has no object", ["add it", "subtract it", "what is minus 5"]],
    ["last isn't clear", ["add 2 and 3, then multiply it by the last result"]],
  ];

  test.each(rows)("%s", async (_why, requests) => {
    const { history } = await run(["add 2 and 3"]);
    for (const request of requests) {
      const { calls, text } = await turn(history, request);
      expect({ request, calls, text }).toEqual({
        request,
        calls: [],
        text: expect.stringMatching(/^I'm the demo model|^我是演示模型/),
      });
    }
  });

  test("in the language of the question", async () => {
    expect((await run(["hello"])).text).toMatch(/^I'm the demo model/);
    expect((await run(["今天星期几？"])).text).toMatch(/^我是演示模型/);
  });

  test("there is no user message", async () => {
    for (const messages of [[], [systemMessage("2 + 3")], [assistantMessage("2 + 3")]]) {
      expect((await complete(messages)).message.content).toMatch(/^I'm the demo model/);
    }
  });

  test("and its own examples work", async () => {
    for (const request of ["hello", "你好"]) {
      const { text } = await run([request]);
      const examples = [...text.matchAll(/["“](.+?)["”]/g)].map(([, example = ""]) => example);
      expect(examples).toHaveLength(2);
      for (const example of examples) expect((await run([example])).text).toMatch(/20[.。]$/);
    }
  });
});

describe("the demo model is honest", () => {
  test.each([
    ["12345678901234567890 + 1"],
    ["9007199254740993 + 1"],
    ["0.1234567890123456 * 2"],
    [`0.${"0".repeat(400)}1 + 1`],
    [`0.${"0".repeat(315)}123456789 + 1`],
    ["add 1,000,000,000,000,000,000 and 1"],
  ])("about numbers that it would have to round: %j", async (request) => {
    const turn = await run([request]);
    expect(turn.calls).toEqual([]);
    expect(turn.text).toContain("doesn't do such numbers");
  });

  test("and takes the largest numbers that are exact", async () => {
    const request = "999999999999999 + 0.12345678901234500";
    expect((await run([request])).calls).toEqual(["add(999999999999999, 0.123456789012345)"]);
  });

  test.each([
    [
      "divide 1 by 0, then add 5",
      "I stopped, because the tool divide failed: error: division by zero",
    ],
    ["用 1 除以 0，再加 5", "我停下了，因为工具 divide 出错：error: division by zero"],
  ])("about a tool that fails, and stops there: %j", async (request, text) => {
    const turn = await run([request]);
    expect(turn.calls).toEqual(["divide(1, 0)"]);
    expect(turn.text).toBe(text);
  });

  test.each([
    "",
    "five",
    "NaN",
    "Infinity",
    "1e999",
    "12345678901234567890",
    "0".repeat(1e6),
    "5 6",
  ])("about a tool result that is no number it can use (%#)", async (content) => {
    const turn = await run(["2 + 3 + 4"], { ...arithmetic, add: () => content });
    expect(turn.calls).toEqual(["add(2, 3)"]);
    expect(turn.text).toContain("gave no number that I can work with");
    expect(turn.text.length).toBeLessThan(400);
    expect(turn.text.isWellFormed()).toBe(true);
  });

  test("about a tool that it isn't offered, before it calls any", async () => {
    const { add = () => 0 } = arithmetic;
    const turn = await run(["add 2 and 3, then divide by 4"], { add });
    expect(turn.calls).toEqual([]);
    expect(turn.text).toBe("That takes tools that I wasn't offered: divide.");
  });

  test("about tokens: it reports no usage", async () => {
    expect(await complete([userMessage("hello")])).not.toHaveProperty("usage");
    expect(await complete([userMessage("2 + 3")])).not.toHaveProperty("usage");
  });
});

describe("the demo model", () => {
  test("makes one call a message, under an id derived from the history alone", async () => {
    const messages = [userMessage("2 + 3 + 4")];
    const reply = await complete(messages);
    expect(reply).toEqual(await complete(messages));
    expect(reply).toEqual({
      message: assistantMessage("", [
        { id: "demo_call_1", name: "add", arguments: { a: 2, b: 3 } },
      ]),
      finishReason: "tool_calls",
    });
  });

  test("gives fresh ids, also behind a window on the history", async () => {
    const { history } = await run(["1 + 2 + 3", "4 + 5 + 6"]);
    const windowed = history.slice(history.findLastIndex(({ role }) => role === "user"));
    const { message } = await complete([...windowed, userMessage("7 + 8")]);
    const ids = [...history, message].flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id));
    expect(ids).toHaveLength(5);
    expect(new Set(ids).size).toBe(5);
  });

  test("streams its text in pieces that make up the message", async () => {
    const emoji = `error: ${"😀".repeat(300)}`;
    const { history } = await run(["add 2 and 3"], { ...arithmetic, add: () => emoji });
    const before = history.slice(0, -1);
    const pieces: string[] = [];
    const onText = (piece: string) => pieces.push(piece);
    const tools = specs(arithmetic);
    const { message, finishReason } = await demoModel().complete(before, tools, {
      ...quietly,
      onText,
    });
    expect(finishReason).toBe("stop");
    expect(message.content).toMatch(/😀…$/u);
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.join("")).toBe(message.content);
    for (const piece of pieces) expect(piece.isWellFormed()).toBe(true);
  });

  test("rejects with the reason where it is aborted beforehand", async () => {
    const reason = new Error("stop");
    const options = { ...quietly, signal: AbortSignal.abort(reason) };
    for (const input of ["hello", "2 + 3"]) {
      const reply = demoModel().complete([userMessage(input)], specs(arithmetic), options);
      await expect(reply).rejects.toBe(reason);
    }
  });

  test.each([
    ["at once", (abort: () => void) => abort()],
    ["from outside", (abort: () => void) => setImmediate(abort)],
  ])("stops in the middle of its text where it is aborted %s", async (_how, schedule) => {
    const reason = new Error("stop");
    const abort = new AbortController();
    const pieces: string[] = [];
    const onText = (piece: string) => {
      pieces.push(piece);
      if (pieces.length === 2) schedule(() => abort.abort(reason));
    };
    const options = { signal: abort.signal, onText };
    const reply = demoModel().complete([userMessage("hello")], specs(arithmetic), options);
    await expect(reply).rejects.toBe(reason);
    expect(pieces).toHaveLength(2);
  });

  test.each([
    ["(".repeat(100_000)],
    [`${"1+".repeat(50_000)}1`],
    ["(".repeat(999)],
    [`${"1+".repeat(400)}1`],
    ["-".repeat(900)],
    [`2 +${" ".repeat(1000)}3`],
    ["加".repeat(100_000)],
  ])("says of a request of any length that it is too long (%#)", async (request) => {
    expect((await run([request])).text).toMatch(/too long for the demo|太长了/);
  });

  test("takes the longest request that it takes without running out of stack", async () => {
    const request = `${"(".repeat(98)}1+2${")".repeat(98)}`;
    expect((await run([request])).text).toBe("The result is 3.");
    expect((await run([`${"1+".repeat(99)}1`])).text).toBe("The result is 100.");
  });
});

describe("whatever the conversation, the demo model", () => {
  const word = fc.constantFrom(
    ..."add subtract multiply divide by to from and then now it what is the sum of please".split(
      " ",
    ),
    ..."2 3.5 -4 1,000 .5 twenty-one hundred plus times x + - * / ( ) , . = ? !".split(" "),
    ..."先算 再 加 减去 乘以 除以 结果 把 从 中 和 的和 相加 是多少 十五 两百五 负 点 ， 。".split(
      " ",
    ),
  );
  const input = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.array(word, { maxLength: 14 }).map((words) => words.join(" ")),
    fc.array(word, { maxLength: 14 }).map((words) => words.join("")),
  );
  const message = fc.oneof(
    input.map(userMessage),
    fc.tuple(fc.string(), input).map(([id, content]) => toolMessage(id, content)),
    fc
      .tuple(fc.constantFrom("a", "demo_call_1"), fc.constantFrom("5", "error", "-0", "x"))
      .map(([id, content]) => toolMessage(id, content)),
    fc
      .tuple(input, fc.constantFrom("add", "other"), fc.constantFrom("a", "demo_call_1"))
      .map(([content, name, id]) => assistantMessage(content, [{ id, name, arguments: null }])),
    fc
      .constantFrom("The result is 5.", "结果是 x。", "")
      .map((content) => assistantMessage(content)),
  );

  test("answers with either one call of an offered tool, with finite numbers, or a text", async () => {
    const offered = fc.subarray(Object.keys(arithmetic));
    let called = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { maxLength: 6 }),
        input,
        offered,
        async (before, last, names) => {
          const messages = [...before, userMessage(last)];
          const tools = specs(arithmetic).filter(({ name }) => names.includes(name));
          const { message, finishReason } = await demoModel().complete(messages, tools, quietly);
          const [call, ...more] = message.toolCalls;
          expect(more).toEqual([]);
          expect(finishReason).toBe(call ? "tool_calls" : "stop");
          expect(message.content === "").toBe(call !== undefined);
          if (!call) return;
          called += 1;
          expect(names).toContain(call.name);
          const { a, b } = call.arguments as { a: number; b: number };
          expect([a, b].every(Number.isFinite)).toBe(true);
          const ids = before.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id));
          expect(ids).not.toContain(call.id);
        },
      ),
      { numRuns: 3000, examples: [[[], "2 + 3", ["add"]]] },
    );
    expect(called).toBeGreaterThan(0);
  });

  test("comes to the same as JavaScript for any expression", async () => {
    const { expression } = fc.letrec<{ expression: string; leaf: string; node: string }>((tie) => ({
      leaf: fc.oneof(fc.nat(99).map(String), fc.integer({ min: -9, max: -1 }).map(String)),
      node: fc
        .tuple(tie("expression"), fc.constantFrom(" + ", "-", " * ", "/"), tie("expression"))
        .chain(([a, sign, b]) => fc.constantFrom(`${a}${sign}${b}`, `(${a})${sign}(${b})`)),
      expression: fc.oneof({ maxDepth: 4 }, tie("leaf"), tie("node")),
    }));
    const exactly = { ...arithmetic, divide: (a: number, b: number) => a / b };
    await fc.assert(
      fc.asyncProperty(expression, async (a) => {
        const text = `${a} + 1`;
        fc.pre(!text.includes("--") && text.length < 180);
        const expected: unknown = runInNewContext(text);
        const turn = await run([text], exactly);
        if (/Infinity|NaN/.test(turn.text)) expect(text).toContain("/");
        else expect(turn.text).toBe(`The result is ${expected}.`);
      }),
      { numRuns: 500 },
    );
  });
});
