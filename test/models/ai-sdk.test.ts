import type { LanguageModelV2 } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import type { ToolSpec } from "../../lib/agent/model.ts";
import { aiSdkModel } from "../../lib/models/ai-sdk.ts";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { ask, finish, languageModel, text } from "./ai-sdk/hand-made.ts";
import { ASKED, modelContract, signalOf } from "./contract.ts";

modelContract("a model of the AI SDK", async () => {
  const { model } = languageModel({
    contents: [[{ type: "text", text: "five" }]],
    streams: [[...text("fi", "ve"), finish()]],
  });
  return { model: aiSdkModel(model), messages: ASKED };
});

describe("a reply", () => {
  test("leaves out what the provider did by itself", async () => {
    const call = { toolCallId: "w", toolName: "search" };
    const { reply } = await ask({
      contents: [
        [
          { type: "tool-call", ...call, input: "{}", providerExecuted: true },
          { type: "tool-approval-request", approvalId: "1", toolCallId: "w" },
          { type: "tool-result", ...call, result: ["found"] },
          { type: "source", sourceType: "url", id: "1", url: "https://localhost/" },
          { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array(9) } },
          { type: "custom", kind: "hand.made" },
          { type: "text", text: "five" },
        ],
      ],
    });
    expect(reply?.message).toEqual(assistantMessage("five"));
  });

  test("has an id for each call, missing or met before", async () => {
    const ids = ["a", "", "a", "old", " "];
    const content = ids.map((toolCallId) => ({
      type: "tool-call" as const,
      toolCallId,
      toolName: "add",
      input: "{}",
    }));
    const messages = [
      ...ASKED,
      assistantMessage("", [{ id: "old", name: "add", arguments: {} }]),
      toolMessage("old", "3"),
    ];
    const { reply } = await ask({ contents: [content] }, {}, messages);
    const given = reply?.message.toolCalls.map(({ id }) => id) ?? [];
    expect(given[0]).toBe("a");
    expect(new Set([...given, "old"]).size).toBe(6);
    expect(given.every((id) => id.trim() !== "")).toBe(true);
  });

  test("that the provider calls an error is tried again", async () => {
    const script = { contents: [[], []], finishReason: { unified: "error", raw: "oops" } } as const;
    const { error, asked } = await ask(script, { maxTries: 2 });
    expect(error).toMatchObject({ isTransient: true });
    expect((error as Error).message).toContain("oops");
    expect(asked).toHaveLength(2);
  });

  test("of the interface's version 2 is read too", async () => {
    const model: LanguageModelV2 = {
      specificationVersion: "v2",
      provider: "older",
      modelId: "tiny",
      supportedUrls: {},
      doGenerate: async () => ({
        content: [{ type: "text", text: "five" }],
        finishReason: "stop",
        usage: { inputTokens: 1, outputTokens: undefined, totalTokens: undefined },
        warnings: [],
      }),
      doStream: async () => ({
        stream: new ReadableStream({
          start: (controller) => {
            const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
            controller.enqueue({ type: "finish", finishReason: "unknown", usage });
            controller.close();
          },
        }),
      }),
    };
    const older = aiSdkModel(model, { maxTries: 1 });
    expect(await older.complete(ASKED, [], { signal: signalOf() })).toMatchObject({
      message: { content: "five" },
      usage: { inputTokens: 1, outputTokens: 0 },
      finishReason: "stop",
    });
    const streamed = older.complete(ASKED, [], { signal: signalOf(), onText: () => {} });
    await expect(streamed).rejects.toMatchObject({ isTransient: true, provider: "older:tiny" });
  });
});

describe("a request", () => {
  test("has one system message, user messages in a row as one, and nothing empty", async () => {
    const { asked } = await ask({ contents: [[]] }, {}, [
      systemMessage("Be kind."),
      userMessage("one"),
      assistantMessage(" \n"),
      userMessage(""),
      systemMessage(""),
      assistantMessage("\n\n", [{ id: "a", name: "add", arguments: "not json" }]),
      toolMessage("a", ""),
      systemMessage("Be brief."),
      userMessage("two"),
    ]);
    expect(asked[0]?.prompt).toStrictEqual([
      { role: "system", content: "Be kind.\n\nBe brief." },
      { role: "user", content: [{ type: "text", text: "one\n\n(empty)" }] },
      {
        role: "assistant",
        content: [
          {
            type: "tool-call",
            toolCallId: "a",
            toolName: "add",
            input: { invalid_arguments: "not json" },
          },
        ],
      },
      {
        role: "tool",
        content: [
          {
            type: "tool-result",
            toolCallId: "a",
            toolName: "add",
            output: { type: "text", value: "(empty)" },
          },
        ],
      },
      { role: "user", content: [{ type: "text", text: "two" }] },
    ]);
  });

  test("has the settings, and the tools as they are", async () => {
    const { model, asked } = languageModel({ contents: [[]] });
    const called = [
      assistantMessage("", [{ id: "a", name: "ns.add", arguments: {} }]),
      toolMessage("a", "3"),
    ];
    const parameters = { type: "object", properties: {} } as const;
    const tools: ToolSpec[] = [{ name: "ns.add", description: "a plus b", parameters }];
    const providerOptions = { hand: { effort: "low" } };
    const settings = { maxTokens: 9, temperature: 0, providerOptions };
    await aiSdkModel(model, settings).complete([...ASKED, ...called], tools, {
      signal: signalOf(),
    });
    expect(asked[0]).toMatchObject({
      prompt: [{}, { content: [{ toolName: "ns.add" }] }, { content: [{ toolName: "ns.add" }] }],
      maxOutputTokens: 9,
      temperature: 0,
      providerOptions,
      tools: [
        { type: "function", name: "ns.add", description: "a plus b", inputSchema: parameters },
      ],
    });
  });
});
