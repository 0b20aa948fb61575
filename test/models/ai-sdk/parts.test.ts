import { describe, expect, test } from "vitest";
import type { ModelReply } from "../../../lib/agent/model.ts";
import { modelView } from "../../../lib/agent/view.ts";
import type { JsonObject } from "../../../lib/session/json.ts";
import {
  assistantMessage,
  type Message,
  messageFromJson,
  toolMessage,
  wholeMessageToJson,
} from "../../../lib/session/message.ts";
import { ASKED } from "../contract.ts";
import { ask, type Content, finish, type StreamPart } from "./hand-made.ts";

/** What is sent of a reply in the next step, once it was stored. */
const sentBack = async ({ message }: ModelReply, results: readonly string[]) => {
  const stored = messageFromJson(JSON.parse(JSON.stringify(wholeMessageToJson(message))));
  const answers = message.toolCalls.map(({ id }, at) => toolMessage(id, results[at] ?? ""));
  const history = modelView([...ASKED, stored, ...answers], { provider: "hand.made:tiny" });
  const { asked } = await ask({ contents: [[]] }, {}, history);
  return asked[0]?.prompt.slice(1);
};

const hand = (letters: string) => ({ hand: { signature: letters } });

const CALL = { type: "tool-call", toolCallId: "a", toolName: "add", input: "{}" } as const;
const SIGNATURE = { providerMetadata: hand("s1") };

const SIGNED: Content = [
  { type: "reasoning", text: "first …", providerMetadata: hand("s1") },
  {
    type: "tool-call",
    toolCallId: "a",
    toolName: "add",
    input: '{"a":1}',
    providerMetadata: hand("s2"),
  },
  { type: "reasoning", text: "", providerMetadata: hand("s3") },
  { type: "text", text: "I add ", providerMetadata: hand("s4") },
  { type: "text", text: "twice" },
  { type: "tool-call", toolCallId: "b", toolName: "add", input: "" },
];

const SIGNED_STREAM: StreamPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "reasoning-start", id: "0" },
  { type: "reasoning-delta", id: "0", delta: "first" },
  { type: "reasoning-delta", id: "0", delta: " …" },
  { type: "reasoning-delta", id: "0", delta: "", providerMetadata: hand("s1") },
  { type: "reasoning-end", id: "0" },
  { type: "tool-input-start", id: "a", toolName: "add" },
  { type: "tool-input-delta", id: "a", delta: '{"a":1}' },
  { type: "tool-input-end", id: "a" },
  {
    type: "tool-call",
    toolCallId: "a",
    toolName: "add",
    input: '{"a":1}',
    providerMetadata: hand("s2"),
  },
  { type: "reasoning-start", id: "0", providerMetadata: hand("early") },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "I add " },
  { type: "reasoning-end", id: "0", providerMetadata: hand("s3") },
  { type: "text-end", id: "0", providerMetadata: hand("s4") },
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "twice" },
  { type: "text-end", id: "0" },
  { type: "tool-call", toolCallId: "b", toolName: "add", input: "" },
  { type: "ping" },
  finish(),
];

const SENT_BACK = [
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "first …", providerOptions: hand("s1") },
      {
        type: "tool-call",
        toolCallId: "a",
        toolName: "add",
        input: { a: 1 },
        providerOptions: hand("s2"),
      },
      { type: "reasoning", text: "", providerOptions: hand("s3") },
      { type: "text", text: "I add ", providerOptions: hand("s4") },
      { type: "text", text: "twice" },
      { type: "tool-call", toolCallId: "b", toolName: "add", input: {} },
    ],
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: "a",
        toolName: "add",
        output: { type: "text", value: "3" },
      },
      {
        type: "tool-result",
        toolCallId: "b",
        toolName: "add",
        output: { type: "error-text", value: "error: no numbers" },
      },
    ],
  },
];

describe("what the provider needs back", () => {
  test.each([
    ["at once", { contents: [SIGNED] }],
    ["streamed", { streams: [SIGNED_STREAM] }],
  ])("goes back word for word and in its order, %s (C13)", async (_how, script) => {
    const { reply } = await ask(script);
    expect(reply).toMatchObject({
      message: { content: "I add twice", toolCalls: [{ id: "a" }, { id: "b", arguments: {} }] },
      usage: { inputTokens: 12, outputTokens: 34 },
      finishReason: "end_turn",
    });
    if (!reply) return;
    expect(await sentBack(reply, ["3", "error: no numbers"])).toStrictEqual(SENT_BACK);
  });

  test("goes back where the view gave a call another id", async () => {
    const { reply } = await ask({ contents: [SIGNED] });
    if (!reply) throw new Error("no reply");
    const again = assistantMessage(
      "I add twice",
      reply.message.toolCalls,
      reply.message.providerData,
    );
    const pair = (message: Message) => [message, toolMessage("a", "3"), toolMessage("b", "4")];
    const history = [...ASKED, ...pair(reply.message), ...ASKED, ...pair(again)];
    const { asked } = await ask(
      { contents: [[]] },
      {},
      modelView(history, { provider: "hand.made:tiny" }),
    );
    const { content } = asked[0]?.prompt.at(-2) ?? {};
    expect(content).toHaveLength(6);
    expect(content?.[1]).toMatchObject({ toolCallId: "a_2", providerOptions: hand("s2") });
  });

  test("isn't sent where it is another's, or doesn't fit the message", async () => {
    const parts = (...given: JsonObject[]) => ({ parts: given });
    const datas = [
      {
        provider: "other:tiny",
        data: parts({ kind: "reasoning", text: "secret" }, { kind: "text", length: 4 }),
      },
      { provider: "hand.made:tiny", data: parts({ kind: "text", length: 3 }) },
      { provider: "hand.made:tiny", data: parts({ kind: "text", length: 4 }, { kind: "call" }) },
      { provider: "hand.made:tiny", data: { parts: "none" } },
    ];
    for (const data of datas) {
      const { asked } = await ask({ contents: [[]] }, {}, [
        ...ASKED,
        assistantMessage("five", [], data),
      ]);
      expect(asked[0]?.prompt.at(-1)?.content).toStrictEqual([{ type: "text", text: "five" }]);
    }
  });

  test("isn't sent where it leaves out a call", async () => {
    const data = { provider: "hand.made:tiny", data: { parts: [{ kind: "text", length: 4 }] } };
    const message = assistantMessage("five", [{ id: "a", name: "add", arguments: {} }], data);
    const { asked } = await ask({ contents: [[]] }, {}, [...ASKED, message, toolMessage("a", "3")]);
    expect(asked[0]?.prompt[1]?.content).toHaveLength(2);
  });

  test.each([
    ["text behind a call", [{ type: "text", text: "one" }, CALL, { type: "text", text: "two" }]],
    [
      "empty text with something in it for the provider",
      [{ type: "text", text: "", ...SIGNATURE }, CALL],
    ],
  ] as const)("is kept for %s", async (_what, content) => {
    const { reply } = await ask({ contents: [content] });
    if (!reply) throw new Error("no reply");
    const sent = await sentBack(reply, ["3"]);
    expect(sent?.[0]?.content).toMatchObject(content.map(({ type }) => ({ type })));
  });

  test("is nothing where text and calls say it all", async () => {
    const { reply } = await ask({
      contents: [[SIGNED[4], SIGNED[5]].flatMap((part) => part ?? [])],
    });
    expect(reply?.message).not.toHaveProperty("providerData");
  });
});
