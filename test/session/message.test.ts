import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  checkMessage,
  messageFromJson,
  messageToJson,
  systemMessage,
  toolMessage,
  userMessage,
  wholeMessageToJson,
  withoutProviderData,
} from "../../lib/session/message.ts";
import { anyMessage, anyWholeMessage } from "./arbitraries.ts";
import { faultOf } from "./fault.ts";

const call = { id: "c1", name: "add", arguments: { a: 1, nested: { list: [null, "x"] } } };

describe("a message in JSON", () => {
  test("has all its fields, in this order, to the letter", () => {
    const messages = [
      systemMessage("be kind"),
      userMessage("hi"),
      assistantMessage("", [call]),
      toolMessage("c1", "3"),
    ];
    expect(messages.map((message) => JSON.stringify(messageToJson(message)))).toEqual([
      '{"role":"system","content":"be kind","tool_calls":[],"tool_call_id":null}',
      '{"role":"user","content":"hi","tool_calls":[],"tool_call_id":null}',
      '{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"add","arguments":{"a":1,"nested":{"list":[null,"x"]}}}],"tool_call_id":null}',
      '{"role":"tool","content":"3","tool_calls":[],"tool_call_id":"c1"}',
    ]);
  });

  test("comes back as the message that it was written from", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        deepStrictEqual(messageFromJson(messageToJson(message)), message);
        deepStrictEqual(
          messageFromJson(JSON.parse(JSON.stringify(messageToJson(message)))),
          message,
        );
        deepStrictEqual(checkMessage(message), message);
      }),
    );
  });

  test("has what its provider keeps with it only where that is asked for", () => {
    const data = { provider: "x:1", data: { signature: "s", nested: [{}] } };
    const message = assistantMessage("hi", [call], data);
    expect(messageToJson(message)).not.toHaveProperty("provider_data");
    expect(wholeMessageToJson(message)).toStrictEqual({
      ...messageToJson(message),
      provider_data: data,
    });
    fc.assert(
      fc.property(anyWholeMessage, (any) => {
        const json: unknown = JSON.parse(JSON.stringify(wholeMessageToJson(any)));
        deepStrictEqual(structuredClone(messageFromJson(json)), structuredClone(checkMessage(any)));
        deepStrictEqual(messageFromJson(messageToJson(any)), withoutProviderData(any));
      }),
    );
    const checked = checkMessage(message);
    expect(Object.isFrozen(checked.providerData?.data["nested"])).toBe(true);
  });

  test("may leave out tool_calls and tool_call_id where they are empty, or give null", () => {
    expect(messageFromJson({ role: "user", content: "hi" })).toStrictEqual(userMessage("hi"));
    const nulls = { role: "user", content: "hi", tool_calls: null, tool_call_id: null };
    expect(messageFromJson(nulls)).toStrictEqual(userMessage("hi"));
  });

  test('C07 content "" of a call and of a result stays ""', () => {
    expect(messageFromJson({ role: "assistant", content: "", tool_calls: [call] }).content).toBe(
      "",
    );
    expect(messageFromJson({ role: "tool", content: "", tool_call_id: "" })).toStrictEqual(
      toolMessage("", ""),
    );
  });

  test.each([null, "text", '{"cmd":"ls', "", 0, false, [], [1, [2]]])(
    "C10 keeps the arguments %o as they are",
    (args) => {
      const json = {
        role: "assistant",
        content: "",
        tool_calls: [{ id: "c", name: "n", arguments: args }],
      };
      expect(messageFromJson(json).toolCalls[0]?.arguments).toStrictEqual(args);
    },
  );

  test("text is made well-formed wherever it enters", () => {
    expect(userMessage("a\ud800").content).toBe("a\ufffd");
    const wild = {
      role: "assistant",
      content: "\udc00",
      toolCalls: [{ id: "\ud800", name: "\ud800", arguments: "\ud800" }],
      toolCallId: null,
    };
    expect(checkMessage(wild)).toStrictEqual(
      assistantMessage("\ufffd", [{ id: "\ufffd", name: "\ufffd", arguments: "\ufffd" }]),
    );
    expect(messageFromJson({ role: "tool", content: "", tool_call_id: "\ud800" }).toolCallId).toBe(
      "\ufffd",
    );
  });
});

const refused: readonly (readonly [title: string, value: unknown, fault: string])[] = [
  ["no object", "hi", "messages[3]: must be an object, not a string"],
  ["null", null, "messages[3]: must be an object, not null"],
  ["an array", [], "messages[3]: must be an object, not an array"],
  ["no role", { content: "" }, "messages[3].role: must be one of system, user, assistant, tool"],
  [
    "an unknown role",
    { role: "developer", content: "" },
    "messages[3].role: must be one of system, user, assistant, tool",
  ],
  ["no content", { role: "user" }, "messages[3].content: must be a string, not undefined"],
  [
    "content null",
    { role: "assistant", content: null },
    "messages[3].content: must be a string, not null",
  ],
  [
    "C13 content in parts",
    { role: "user", content: [{ type: "thinking" }] },
    "messages[3].content: must be a string, not an array",
  ],
  [
    "C14 an unknown field",
    { role: "user", content: "", parts: [] },
    "messages[3].parts: isn't a known field",
  ],
  [
    "a provider's data in a user message",
    { role: "user", content: "", provider_data: { provider: "x", data: {} } },
    "messages[3].provider_data: can't be in a user message",
  ],
  [
    "a provider's data without its name",
    { role: "assistant", content: "", provider_data: { data: {} } },
    "messages[3].provider_data.provider: must be a string, not undefined",
  ],
  [
    "a provider's data that are no object",
    { role: "assistant", content: "", provider_data: { provider: "x", data: "signed" } },
    "messages[3].provider_data.data: must be an object, not a string",
  ],
  [
    "C18 __proto__ as a field",
    JSON.parse('{"role":"user","content":"","__proto__":{}}'),
    "messages[3].__proto__: isn't a known field",
  ],
  [
    "tool calls that aren't a list",
    { role: "assistant", content: "", tool_calls: {} },
    "messages[3].tool_calls: must be an array, not an object",
  ],
  [
    "tool calls of a user",
    { role: "user", content: "", tool_calls: [call] },
    "messages[3].tool_calls: must be empty in a user message",
  ],
  [
    "a call that is no object",
    { role: "assistant", content: "", tool_calls: [1] },
    "messages[3].tool_calls[0]: must be an object, not a number",
  ],
  [
    "a call with no id",
    { role: "assistant", content: "", tool_calls: [{ name: "n", arguments: {} }] },
    "messages[3].tool_calls[0].id: must be a string, not undefined",
  ],
  [
    "a call with no name",
    { role: "assistant", content: "", tool_calls: [call, { id: "", arguments: {} }] },
    "messages[3].tool_calls[1].name: must be a string, not undefined",
  ],
  [
    "a call with no arguments",
    { role: "assistant", content: "", tool_calls: [{ id: "", name: "" }] },
    "messages[3].tool_calls[0].arguments: is missing",
  ],
  [
    "an unknown field of a call",
    { role: "assistant", content: "", tool_calls: [{ ...call, "x y": 1 }] },
    'messages[3].tool_calls[0]["x y"]: isn\'t a known field',
  ],
  [
    "C03 a Date in arguments",
    { role: "assistant", content: "", tool_calls: [{ ...call, arguments: { at: new Date(0) } }] },
    "messages[3].tool_calls[0].arguments.at: an instance of Date can't be written as JSON",
  ],
  [
    "a result for no call",
    { role: "tool", content: "" },
    "messages[3].tool_call_id: must name the call that a tool message answers",
  ],
  [
    "a user answering a call",
    { role: "user", content: "", tool_call_id: "c1" },
    "messages[3].tool_call_id: must be null in a user message",
  ],
  [
    "a call id that is a number",
    { role: "tool", content: "", tool_call_id: 1 },
    "messages[3].tool_call_id: must be a string, not a number",
  ],
  [
    "the names of the form in memory",
    { role: "tool", content: "", toolCallId: "c1" },
    "messages[3].toolCallId: isn't a known field",
  ],
];

test.each(refused)("%s is refused with the path of the fault", (_title, value, fault) => {
  expect(faultOf(() => messageFromJson(value, "messages[3]"))).toBe(fault);
});

test("a message in memory is checked by its own field names, and copied", () => {
  const message = assistantMessage("", [call]);
  const copy = checkMessage(message);
  expect(copy).toStrictEqual(message);
  expect(copy.toolCalls[0]?.arguments).not.toBe(call.arguments);
  expect(faultOf(() => checkMessage({ role: "user", content: "", tool_calls: [] }))).toBe(
    "tool_calls: isn't a known field",
  );
  expect(faultOf(() => checkMessage({ ...message, toolCalls: [{ id: 1 }] }, "message"))).toBe(
    "message.toolCalls[0].arguments: is missing",
  );
});
