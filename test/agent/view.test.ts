import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { modelView } from "../../lib/agent/view.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { anyMessage } from "../session/arbitraries.ts";
import { call } from "./parts.ts";

const unknown = (id: string) =>
  toolMessage(id, "error: interrupted before a result was recorded; the call may have run");

const asks = (...ids: string[]) =>
  assistantMessage(
    "",
    ids.map((id) => call(id, "work")),
  );

const turn = (id: string): Message[] => [
  userMessage(`do ${id}`),
  asks(id),
  toolMessage(id, `${id} is done`),
  assistantMessage("done"),
];

const withoutIds = (message: Message): Message => ({
  ...message,
  toolCalls: message.toolCalls.map((call) => ({ ...call, id: "" })),
});

describe("what the model is shown", () => {
  test("of a healthy history is all of it", () => {
    const history = [
      systemMessage("be kind"),
      ...turn("a"),
      userMessage("two at once"),
      asks("b", "c"),
      toolMessage("b", ""),
      toolMessage("c", "3"),
      assistantMessage("done"),
    ];
    expect(modelView(history)).toStrictEqual(history);
    expect(modelView([])).toEqual([]);
  });

  test("A01 of a call at the end is the call with an error result, in front of what comes next", () => {
    const cut = [userMessage("do a"), asks("a")];
    expect(modelView(cut)).toStrictEqual([...cut, unknown("a")]);
    expect(modelView([...cut, userMessage("hello?")])).toStrictEqual([
      ...cut,
      unknown("a"),
      userMessage("hello?"),
    ]);
  });

  test("A03 of three whole turns and a dangling fourth is changed in the fourth alone", () => {
    const healthy = [...turn("a"), ...turn("b"), ...turn("c")];
    const dangling = [userMessage("do d"), asks("d")];
    expect(modelView([...healthy, ...dangling])).toStrictEqual([
      ...healthy,
      ...dangling,
      unknown("d"),
    ]);
  });

  test("of parallel calls is a result for each, in call order, found or not", () => {
    const history = [
      asks("a", "b", "c"),
      toolMessage("c", "3"),
      toolMessage("a", "1"),
      userMessage("next"),
    ];
    expect(modelView(history)).toStrictEqual([
      asks("a", "b", "c"),
      toolMessage("a", "1"),
      unknown("b"),
      toolMessage("c", "3"),
      userMessage("next"),
    ]);
  });

  test("of results without a call is nothing", () => {
    const history = [
      toolMessage("z", "early"),
      userMessage("hi"),
      toolMessage("a", "no one asked"),
      asks("a"),
      toolMessage("a", "1"),
      toolMessage("a", "again"),
      toolMessage("z", "other"),
    ];
    expect(modelView(history)).toStrictEqual([userMessage("hi"), asks("a"), toolMessage("a", "1")]);
  });

  test("of a result that stands away from its call is an error result at the call", () => {
    const history = [asks("a"), userMessage("hello?"), toolMessage("a", "late")];
    expect(modelView(history)).toStrictEqual([asks("a"), unknown("a"), userMessage("hello?")]);
  });

  test("of calls with one id is the result of each, and no result twice", () => {
    expect(modelView([asks("a", "a"), toolMessage("a", "1"), toolMessage("a", "2")])).toStrictEqual(
      [asks("a", "a_2"), toolMessage("a", "1"), toolMessage("a_2", "2")],
    );
    expect(modelView([asks("a", "a"), toolMessage("a", "1")])).toStrictEqual([
      asks("a", "a_2"),
      toolMessage("a", "1"),
      unknown("a_2"),
    ]);
  });

  test("freezes nothing that isn't the history's own", () => {
    const args = { list: [1] };
    const calls = [{ id: "a", name: "add", arguments: args }];
    modelView([assistantMessage("", calls, { provider: "x:1", data: {} })], { provider: "x:2" });
    expect([Object.isFrozen(args), Object.isFrozen(calls)]).toEqual([false, false]);
  });

  test("of calls without an id has one of its own", () => {
    expect(modelView([asks("", " "), toolMessage(" ", "2"), toolMessage("", "1")])).toStrictEqual([
      asks("call", "call_2"),
      toolMessage("call", "1"),
      toolMessage("call_2", "2"),
    ]);
  });

  test("of ids that a later turn uses again are new ones, calls and results alike", () => {
    const turn = [userMessage("hi"), asks("a", "b"), toolMessage("a", "1"), toolMessage("b", "2")];
    const taken = [userMessage("hi"), asks("a_2"), toolMessage("a_2", "3")];
    expect(modelView([...taken, ...turn, ...turn])).toStrictEqual([
      ...taken,
      ...turn,
      userMessage("hi"),
      asks("a_3", "b_2"),
      toolMessage("a_3", "1"),
      toolMessage("b_2", "2"),
    ]);
  });

  test("of what a provider keeps with a message is its own, and no other's", () => {
    const own = assistantMessage("one", [], { provider: "x:1", data: { signature: "s" } });
    const other = assistantMessage("two", [], { provider: "x:2", data: {} });
    const history = [userMessage("hi"), own, userMessage("and?"), other];
    expect(modelView(history, { provider: "x:1" })).toStrictEqual([
      ...history.slice(0, 3),
      assistantMessage("two"),
    ]);
    expect(modelView(history)).toStrictEqual([
      userMessage("hi"),
      assistantMessage("one"),
      userMessage("and?"),
      assistantMessage("two"),
    ]);
  });

  test("of any messages has one result right behind each call, no orphans, and all other messages in order", () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 20 }), (messages) => {
        const before = structuredClone(messages);
        const view = modelView(messages);
        deepStrictEqual(messages, before);
        const isSpoken = ({ role }: Message) => role !== "tool";
        deepStrictEqual(
          view.filter(isSpoken).map(withoutIds),
          messages.filter(isSpoken).map(withoutIds),
        );

        const expectedIds = view
          .filter(isSpoken)
          .flatMap((message) => ["spoken", ...message.toolCalls.map(({ id }) => id)]);
        const ids = view.map((message) => (isSpoken(message) ? "spoken" : message.toolCallId));
        deepStrictEqual(ids, expectedIds);
        const asked = view.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id));
        deepStrictEqual(new Set(asked).size, asked.length);
        deepStrictEqual(modelView(view), view);
      }),
      { numRuns: 1000 },
    );
  });
});
