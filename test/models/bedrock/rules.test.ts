import { describe, expect, test } from "vitest";
import { checkedRequest, Refused } from "./rules.ts";

/** What keeps the server from taking what Bedrock would refuse. */
describe("the server refuses", () => {
  const user = (...content: unknown[]) => ({ role: "user", content });
  const assistant = (...content: unknown[]) => ({ role: "assistant", content });
  const go = user({ text: "go" });
  const use = (toolUseId: string, more: object = {}) => ({
    toolUse: { toolUseId, name: "add", input: {}, ...more },
  });
  const result = (toolUseId: string, more: object = {}) => ({
    toolResult: { toolUseId, content: [{ text: "1" }], ...more },
  });
  const thought = (signature: unknown) => ({
    reasoningContent: { reasoningText: { text: "hm", signature } },
  });
  const toolConfig = {
    tools: [{ toolSpec: { name: "add", inputSchema: { json: { type: "object" } } } }],
  };
  const sound = {
    messages: [
      go,
      assistant(thought("known"), { text: "I add" }, use("a"), use("b")),
      user(result("b"), result("a", { status: "error" }), { text: "and?" }),
    ],
    system: [{ text: "Be kind." }],
    toolConfig,
    inferenceConfig: { maxTokens: 1, temperature: 0.5 },
  };
  const check = (body: unknown) => checkedRequest(body, new Set(["known"]));

  test("nothing that is sound", () => {
    expect(check(sound).messages).toHaveLength(5);
  });

  const asked = [go, assistant(use("a"))];
  const turns: readonly (readonly [string, unknown[]])[] = [
    ["no messages", []],
    ["an assistant first", [assistant({ text: "hi" }), go]],
    ["an assistant last", [go, assistant({ text: "hi" })]],
    ["two users in a row", [go, go]],
    ["another role", [{ role: "system", content: [{ text: "x" }] }]],
    ["an unknown field", [{ ...go, name: "ann" }]],
    ["no content", [user()]],
    ["blank text", [user({ text: " \n" })]],
    ["a block of two kinds", [user({ text: "x", toolResult: {} })]],
    ["a block of no kind", [user({})]],
    ["a call by a user", [user(use("a"))]],
    ["a result by an assistant", [go, assistant(result("a")), go]],
    ["a call without a result", [...asked, go]],
    ["a result too many", [...asked, user(result("a"), result("b"))]],
    ["a result twice", [...asked, user(result("a"), result("a"))]],
    ["a result without a call", [go, assistant({ text: "x" }), user(result("a"))]],
    ["a result too late", [...asked, go, assistant({ text: "x" }), user(result("a"))]],
    ["a result behind text", [...asked, user({ text: "x" }, result("a"))]],
    ["an id twice", [...asked, user(result("a")), assistant(use("a")), user(result("a"))]],
    ["an id with a dot", [go, assistant(use("a.b")), user(result("a.b"))]],
    ["an empty name", [go, assistant(use("a", { name: "" })), user(result("a"))]],
    ["a text as input", [go, assistant(use("a", { input: "{}" })), user(result("a"))]],
    ["a list as input", [go, assistant(use("a", { input: [] })), user(result("a"))]],
    ["an empty result", [...asked, user(result("a", { content: [] }))]],
    ["another status", [...asked, user(result("a", { status: "fine" }))]],
    ["a signature that isn't its own", [go, assistant(thought("x"), { text: "x" }), go]],
    ["reasoning without a signature", [go, assistant(thought(undefined), { text: "x" }), go]],
    ["nothing but reasoning", [go, assistant(thought("known")), go]],
    ["space at an assistant's end", [go, assistant({ text: "x " }), go]],
  ];
  test.each(turns)("%s", (_what, messages) => {
    expect(() => check({ ...sound, messages })).toThrow(Refused);
  });

  test.each([
    ["an unknown field", { ...sound, stream: true }],
    ["calls without tools", { ...sound, toolConfig: undefined }],
    ["an empty list of tools", { ...sound, toolConfig: { tools: [] } }],
    ["a blank system prompt", { ...sound, system: [{ text: "" }] }],
    ["an empty system prompt", { ...sound, system: [] }],
    ["no room for an answer", { ...sound, inferenceConfig: { maxTokens: 0 } }],
    [
      "an empty description",
      {
        ...sound,
        toolConfig: {
          tools: toolConfig.tools.map((tool) => ({
            toolSpec: { ...tool.toolSpec, description: "" },
          })),
        },
      },
    ],
    [
      "a tool twice",
      { ...sound, toolConfig: { tools: [...toolConfig.tools, ...toolConfig.tools] } },
    ],
    [
      "arguments that are no object",
      {
        ...sound,
        toolConfig: { tools: [{ toolSpec: { name: "add", inputSchema: { json: {} } } }] },
      },
    ],
  ])("%s", (_what, body) => {
    expect(() => check(body)).toThrow(Refused);
  });
});
