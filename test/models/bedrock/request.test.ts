import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../lib/session/json.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  type ToolCall,
  toolMessage,
  userMessage,
} from "../../../lib/session/message.ts";
import { bedrockScene } from "./scene.ts";

const { ask, body, server } = bedrockScene();

const call = (id: string, name = "add", args: ToolCall["arguments"] = {}): ToolCall => ({
  id,
  name,
  arguments: args,
});
const text = (said: string) => ({ text: said });
const toolUse = (toolUseId: string, name = "add", input: unknown = {}) => ({
  toolUse: { toolUseId, name, input },
});
const toolResult = (toolUseId: string, said: string) => ({
  toolResult: { toolUseId, content: [text(said)] },
});

const ODD = JSON.parse('{"__proto__":{"a":1},"x":[null,1e21,0.1,"\\u0000"]}') as JsonObject;

describe("to Converse", () => {
  test("goes the model's id as one part of the path, an ARN too", async () => {
    await ask();
    expect(server().sent.at(-1)?.path).toBe("/model/anthropic.claude-tiny-1%3A0/converse");
    const modelId = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.claude";
    await ask({ options: { modelId }, onText: () => {} });
    expect(server().sent.at(-1)?.path).toBe(
      `/model/${encodeURIComponent(modelId)}/converse-stream`,
    );
  });

  test("goes nothing but the messages where nothing else is given", async () => {
    await ask();
    expect(body()).toStrictEqual({
      messages: [{ role: "user", content: [text("What is 2 + 3?")] }],
    });
  });

  test("go limits, and what this model alone takes", async () => {
    const additionalFields = { thinking: { type: "adaptive" }, top_k: 5 };
    await ask({ options: { maxTokens: 100, temperature: 0, additionalFields } });
    expect(body()).toMatchObject({
      inferenceConfig: { maxTokens: 100, temperature: 0 },
      additionalModelRequestFields: additionalFields,
    });
  });

  test("go the system's messages apart from the others, wherever they stand", async () => {
    const messages = [
      systemMessage("Be kind."),
      systemMessage(" \n"),
      userMessage("first"),
      systemMessage("Be brief."),
      userMessage("second"),
    ];
    await ask({ messages });
    expect(body()).toStrictEqual({
      system: [text("Be kind."), text("Be brief.")],
      messages: [{ role: "user", content: [text("first"), text("second")] }],
    });
  });

  const histories: readonly (readonly [string, readonly Message[], unknown])[] = [
    [
      "all results of one message in one, with what the user says next behind them",
      [
        userMessage("go"),
        assistantMessage("I add", [call("a"), call("b")]),
        toolMessage("a", "3"),
        toolMessage("b", "4"),
        userMessage("stop"),
      ],
      [
        ["user", text("go")],
        ["assistant", text("I add"), toolUse("a"), toolUse("b")],
        ["user", toolResult("a", "3"), toolResult("b", "4"), text("stop")],
      ],
    ],
    [
      "an error as one",
      [userMessage("go"), assistantMessage("", [call("a")]), toolMessage("a", "error: no")],
      [
        ["user", text("go")],
        ["assistant", toolUse("a")],
        ["user", { toolResult: { ...toolResult("a", "error: no").toolResult, status: "error" } }],
      ],
    ],
    [
      "a word in place of a result that is empty",
      [userMessage("go"), assistantMessage("", [call("a")]), toolMessage("a", " \t")],
      [
        ["user", text("go")],
        ["assistant", toolUse("a")],
        ["user", toolResult("a", "(empty)")],
      ],
    ],
    [
      "a word in place of messages that say nothing, and none beside others",
      [
        userMessage("\n"),
        assistantMessage(""),
        userMessage(""),
        userMessage("go"),
        assistantMessage(" "),
        assistantMessage("fine"),
        userMessage("\u00a0\u3000"),
      ],
      [
        ["user", text("(empty)")],
        ["assistant", text("(empty)")],
        ["user", text("go")],
        ["assistant", text("fine")],
        ["user", text("(empty)")],
      ],
    ],
    [
      "a user's word in front of a greeting",
      [assistantMessage("Hello!"), userMessage("go")],
      [
        ["user", text("(empty)")],
        ["assistant", text("Hello!")],
        ["user", text("go")],
      ],
    ],
    ["a user's word where there is nothing at all", [], [["user", text("(empty)")]]],
    [
      "an assistant's text without the space at its end",
      [userMessage("go "), assistantMessage(" fine \n"), userMessage("é😀\u2028中")],
      [
        ["user", text("go ")],
        ["assistant", text(" fine")],
        ["user", text("é😀\u2028中")],
      ],
    ],
    [
      "arguments as objects, to the letter",
      [
        userMessage("go"),
        assistantMessage("", [
          call("a", "add", ODD),
          call("b", "add", "cut {"),
          call("c", "add", [1]),
          call("d", "add", null),
        ]),
        ...["a", "b", "c", "d"].map((id) => toolMessage(id, "1")),
      ],
      [
        ["user", text("go")],
        [
          "assistant",
          toolUse("a", "add", ODD),
          toolUse("b", "add", { invalid_arguments: "cut {" }),
          toolUse("c", "add", { invalid_arguments: [1] }),
          toolUse("d", "add", { invalid_arguments: null }),
        ],
        ["user", ...["a", "b", "c", "d"].map((id) => toolResult(id, "1"))],
      ],
    ],
  ];
  test.each(histories)("goes %s", async (_what, messages, turns) => {
    await ask({ messages });
    expect(body()["messages"]).toStrictEqual(
      (turns as [string, ...unknown[]][]).map(([role, ...content]) => ({ role, content })),
    );
  });

  test("go ids in a form that it takes, each its own, alike for call and result", async () => {
    const ids = ["a.b", "a_b", "a:b", "", "é", "x".repeat(64), "x".repeat(65), "x".repeat(66)];
    const messages = [
      userMessage("go"),
      assistantMessage(
        "",
        ids.map((id) => call(id)),
      ),
      ...ids.map((id) => toolMessage(id, `of ${id}`)),
    ];
    await ask({ messages });
    const [, asked, got] = body()["messages"] as {
      content: {
        toolUse?: { toolUseId: string };
        toolResult?: { toolUseId: string; content: { text: string }[] };
      }[];
    }[];
    const sent = asked?.content.map((block) => block.toolUse?.toolUseId) ?? [];
    expect(new Set(sent).size).toBe(ids.length);
    expect([sent[1], sent[5]]).toEqual(["a_b", "x".repeat(64)]);
    expect(got?.content.map((block) => block.toolResult?.toolUseId)).toEqual(sent);
    expect(got?.content.map((block) => block.toolResult?.content[0]?.text)).toEqual(
      ids.map((id) => `of ${id}`),
    );
    await ask({ messages: [...messages, assistantMessage("fine"), userMessage("and?")] });
    const [, again] = body()["messages"] as (typeof asked)[];
    expect(again).toEqual(asked);
  });

  test("go names that a model made up in a form that it takes", async () => {
    const names = ["functions.add", "", "加", "n".repeat(70), "constructor"];
    const messages = [
      userMessage("go"),
      assistantMessage(
        "",
        names.map((name, at) => call(`c${at}`, name)),
      ),
      ...names.map((_, at) => toolMessage(`c${at}`, "error: no such tool")),
    ];
    await ask({ messages });
    const { messages: sent } = server().requests.at(-1) ?? {};
    expect(sent?.[1]).toMatchObject({
      calls: ["functions_add", "unnamed", "_", "n".repeat(64), "constructor"].map((name) => ({
        name,
      })),
    });
  });

  test("go tools without a description, and without a type of their arguments", async () => {
    const tools = [
      { name: "now", description: " ", parameters: {} },
      { name: "add", description: "a plus b", parameters: { properties: { a: {} } } },
    ];
    await ask({ tools });
    expect(body()["toolConfig"]).toStrictEqual({
      tools: [
        { toolSpec: { name: "now", inputSchema: { json: { type: "object" } } } },
        {
          toolSpec: {
            name: "add",
            description: "a plus b",
            inputSchema: { json: { type: "object", properties: { a: {} } } },
          },
        },
      ],
    });
  });

  test("go the tools of the history by name, where the agent has none any more", async () => {
    const messages = [
      userMessage("go"),
      assistantMessage("", [call("a", "add"), call("b", "no.such"), call("c", "add")]),
      ...["a", "b", "c"].map((id) => toolMessage(id, "1")),
    ];
    await ask({ messages });
    expect(server().requests.at(-1)?.tools).toMatchObject([
      { name: "add", parameters: { type: "object" } },
      { name: "no_such", parameters: { type: "object" } },
    ]);
  });
});
