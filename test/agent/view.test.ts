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
      [asks("a", "a"), toolMessage("a", "1"), toolMessage("a", "2")],
    );
    expect(modelView([asks("a", "a"), toolMessage("a", "1")])).toStrictEqual([
      asks("a", "a"),
      toolMessage("a", "1"),
      unknown("a"),
    ]);
  });

  test("of any messages has one result right behind each call, no orphans, and all other messages in order", () => {
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 20 }), (messages) => {
        const before = structuredClone(messages);
        const view = modelView(messages);
        deepStrictEqual(messages, before);
        const isSpoken = ({ role }: Message) => role !== "tool";
        deepStrictEqual(view.filter(isSpoken), messages.filter(isSpoken));

        const expectedIds = view
          .filter(isSpoken)
          .flatMap((message) => ["spoken", ...message.toolCalls.map(({ id }) => id)]);
        const ids = view.map((message) => (isSpoken(message) ? "spoken" : message.toolCallId));
        deepStrictEqual(ids, expectedIds);
        deepStrictEqual(modelView(view), view);
      }),
      { numRuns: 1000 },
    );
  });
});
