import { describe, expect, test } from "vitest";
import { toolMessage, userMessage } from "../../../lib/session/message.ts";
import { ASKED } from "../contract.ts";
import type { BedrockAnswer } from "../wire-bedrock.ts";
import { type Block, blockEvents, event } from "./bodies.ts";
import { bedrockScene } from "./scene.ts";

const { ask, body, model } = bedrockScene();

const ADD = { toolUseId: "c1", name: "add", input: { a: 2 } };

/** The same answer, at once and streamed. */
const both = (content: readonly object[], blocks: readonly Block[], stopReason = "tool_use") => {
  const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
  return [
    [
      "at once",
      {
        kind: "json",
        body: { output: { message: { role: "assistant", content } }, stopReason, usage },
      },
    ],
    [
      "streamed",
      {
        kind: "frames",
        frames: [
          event("messageStart", { role: "assistant" }),
          ...blocks.flatMap(blockEvents),
          event("messageStop", { stopReason }),
          event("metadata", { usage }),
        ],
      },
    ],
  ] as const satisfies (readonly [string, BedrockAnswer])[];
};

const asking = (how: string, answer: BedrockAnswer) =>
  ask({ answers: [answer], ...(how === "streamed" ? { onText: () => {} } : {}) });

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const thought = (text: string, signature: string) => ({
  reasoningContent: { reasoningText: { text, signature } },
});
const redacted = (text: string) => ({ reasoningContent: { redactedContent: base64(text) } });
const addBlock = {
  start: { toolUse: { toolUseId: "c1", name: "add" } },
  deltas: [{ toolUse: { input: '{"a"' } }, { toolUse: { input: ":2}" } }],
};

describe("reasoning", () => {
  test.each(
    both(
      [
        thought("first", "sig1"),
        redacted("no words"),
        { text: "I think, né😀 " },
        thought("", "sig2"),
        { text: "and add" },
        { toolUse: ADD },
      ],
      [
        {
          deltas: [
            { reasoningContent: { text: "fi" } },
            { reasoningContent: { text: "rst" } },
            { reasoningContent: { signature: "sig1" } },
          ],
        },
        // In two pieces, each base64 of its own.
        { deltas: ["no ", "words"].map(redacted) },
        { deltas: [{ text: "I think, " }, { text: "né😀 " }] },
        { deltas: [{ reasoningContent: { signature: "sig2" } }] },
        { deltas: [{ text: "and add" }] },
        addBlock,
      ],
    ),
  )("goes back at its very place, redacted or not (%s)", async (how, answer) => {
    const { message } = await asking(how, answer);
    expect(message).toMatchObject({
      content: "I think, né😀 and add",
      toolCalls: [{ id: "c1", name: "add", arguments: { a: 2 } }],
      providerData: { provider: model().provider },
    });
    const stored = JSON.parse(JSON.stringify(message)) as typeof message;
    const [call] = stored.toolCalls;
    // A view may give a call another id.
    const renamed = { ...stored, toolCalls: call ? [{ ...call, id: "c1_2" }] : [] };
    await ask({ messages: [...ASKED, renamed, toolMessage("c1_2", "5")] });
    expect(body()["messages"]).toMatchObject([
      {},
      {
        role: "assistant",
        content: [
          thought("first", "sig1"),
          redacted("no words"),
          { text: "I think, né😀" },
          thought("", "sig2"),
          { text: "and add" },
          { toolUse: { ...ADD, toolUseId: "c1_2" } },
        ],
      },
      {},
    ]);
  });

  test.each(
    both(
      [thought("hm", ""), { reasoningContent: { reasoningText: { text: "hm" } } }, { text: "5" }],
      [
        { deltas: [{ reasoningContent: { text: "hm" } }, { reasoningContent: { signature: "" } }] },
        { deltas: [{ reasoningContent: { text: "hm" } }] },
        { deltas: [{ text: "5" }] },
      ],
      "end_turn",
    ),
  )("without a signature isn't kept (%s)", async (how, answer) => {
    const { message } = await asking(how, answer);
    expect(message).toStrictEqual({
      role: "assistant",
      content: "5",
      toolCalls: [],
      toolCallId: null,
    });
  });

  test("goes back with a word where the model said nothing else", async () => {
    const [[how, answer]] = both([thought("hm", "sig3")], [], "max_tokens");
    const { message, finishReason } = await asking(how, answer);
    expect([message.content, finishReason]).toEqual(["", "max_tokens"]);
    await ask({ messages: [...ASKED, message, userMessage("go on")] });
    expect(body()["messages"]).toMatchObject([
      {},
      { content: [thought("hm", "sig3"), { text: "(empty)" }] },
      {},
    ]);
  });

  test("that doesn't fit its message any more is left out", async () => {
    const [[how, answer]] = both([thought("hm", "sig4"), { text: "I add" }, { toolUse: ADD }], []);
    const { message } = await asking(how, answer);
    const { providerData } = message;
    const blocks = [[], [null], [{ kind: "call" }, { kind: "call" }], [{ kind: "image" }], "x", {}];
    for (const changed of [
      { ...message, content: "I add." },
      { ...message, toolCalls: [] },
      ...blocks.map((each) => ({
        ...message,
        ...(providerData ? { providerData: { ...providerData, data: { blocks: each } } } : {}),
      })),
    ]) {
      const results = changed.toolCalls.map(({ id }) => toolMessage(id, "5"));
      await ask({ messages: [...ASKED, changed, ...results, userMessage("and?")] });
      const [, sent] = body()["messages"] as { content: object[] }[];
      expect(sent?.content[0]).toEqual({ text: changed.content });
    }
  });
});

describe("an answer", () => {
  test.each([
    ["end_turn", "five"],
    ["max_tokens", "fi"],
    ["stop_sequence", "five"],
    ["content_filtered", ""],
    ["guardrail_intervened", "I can't say."],
    ["model_context_window_exceeded", "fi"],
    ["malformed_tool_use", ""],
  ])("that stopped for %s says so", async (stopReason, text) => {
    for (const [how, answer] of both([{ text }], [{ deltas: [{ text }] }], stopReason)) {
      const reply = await asking(how, answer);
      expect(reply).toMatchObject({
        message: { content: text },
        finishReason: stopReason,
        usage: { inputTokens: 1, outputTokens: 2 },
      });
    }
  });

  test("may have no message, and no usage", async () => {
    const answer = { kind: "json", body: { stopReason: "guardrail_intervened" } } as const;
    const reply = await ask({ answers: [answer] });
    expect(reply.message).toMatchObject({ content: "", toolCalls: [] });
    expect(reply).not.toHaveProperty("usage");
    const frames = [event("messageStop", { stopReason: "end_turn" })];
    const streamed = await ask({ answers: [{ kind: "frames", frames }], onText: () => {} });
    expect(streamed).not.toHaveProperty("usage");
  });

  test.each(
    both(
      [
        { toolUse: { toolUseId: "s", name: "search", input: {}, type: "server_tool_use" } },
        { toolResult: { toolUseId: "s", content: [{ text: "found" }] } },
        { citationsContent: { content: [{ text: "five" }], citations: [] } },
      ],
      [
        {
          start: { toolUse: { toolUseId: "s", name: "search", type: "server_tool_use" } },
          deltas: [{ toolUse: { input: "{}" } }],
        },
        {
          start: { toolResult: { toolUseId: "s" } },
          deltas: [{ toolResult: [{ text: "found" }] }],
        },
        { deltas: [{ text: "five" }, { citation: { title: "a book" } }] },
      ],
      "end_turn",
    ),
  )("leaves out what the provider did by itself (%s)", async (how, answer) => {
    const { message } = await asking(how, answer);
    expect(message).toMatchObject({ content: "five", toolCalls: [] });
  });

  test("keeps arguments to the letter, streamed or not", async () => {
    const cases: readonly [string, unknown][] = [
      ['{"a":1.0,"b":1e21,"c":-0.5e-3}', { a: 1, b: 1e21, c: -0.0005 }],
      ['{"a":9007199254740993}', '{"a":9007199254740993}'],
      ['{"a":[0.12345678901234567890123]}', '{"a":[0.12345678901234567890123]}'],
      [
        '{"__proto__":{"a":1},"constructor":1}',
        JSON.parse('{"__proto__":{"a":1},"constructor":1}'),
      ],
      ['{"type":"bigDecimal","string":"1"}', { type: "bigDecimal", string: "1" }],
      ['"{\\"a\\":2}"', '{"a":2}'],
    ];
    for (const [text, given] of cases) {
      const reply = { text: "I add", calls: [{ id: "c", name: "add", arguments: text }] };
      for (const onText of [undefined, () => {}]) {
        const { message } = await ask({
          answers: [{ kind: "reply", reply }],
          ...(onText ? { onText } : {}),
        });
        expect(message.toolCalls).toStrictEqual([{ id: "c", name: "add", arguments: given }]);
      }
    }
  });

  test("gives a call whose id was met before another", async () => {
    const calls = [1, 2].map(() => ({ id: "c1", name: "add", arguments: "{}" }));
    const { message } = await ask({ answers: [{ kind: "reply", reply: { calls } }] });
    const history = [...ASKED, message, ...message.toolCalls.map(({ id }) => toolMessage(id, "5"))];
    const next = await ask({ answers: [{ kind: "reply", reply: { calls } }], messages: history });
    const ids = [...message.toolCalls, ...next.message.toolCalls].map(({ id }) => id);
    expect([ids[0], new Set(ids).size]).toEqual(["c1", 4]);
  });
});
