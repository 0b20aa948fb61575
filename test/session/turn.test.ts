import { deepStrictEqual } from "node:assert";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assistantMessage,
  type Message,
  systemMessage,
  userMessage,
} from "../../lib/session/message.ts";
import {
  type DoneTurn,
  splitIntoTurns,
  visibleMessages,
  visibleTurns,
} from "../../lib/session/turn.ts";
import { anyMessage } from "./arbitraries.ts";

const turn = (turnId: string, contents: string, supersedes?: string): DoneTurn => ({
  status: "done",
  turnId,
  messages: contents.split(" ").map(messageOf),
  startedAt: "2026-12-01T03:04:05Z",
  finishedAt: "2026-12-01T03:04:06Z",
  finish: "final",
  usage: { inputTokens: 0, outputTokens: 0 },
  ...(supersedes === undefined ? {} : { supersedes }),
});

/** "s1", "u1", "a1": the system prompt, a user's message, an answer. */
const messageOf = (content: string): Message => {
  if (content.startsWith("s")) return systemMessage(content);
  return content.startsWith("u") ? userMessage(content) : assistantMessage(content);
};

const contents = (messages: readonly Message[]): string =>
  messages.map(({ content }) => content).join(" ");

describe("the messages of a history", () => {
  const second = [turn("1", "s u1 a1"), turn("2", "u2 a2")];
  test.each<readonly [title: string, visible: Message[], row: string]>([
    ["of no turns are none", visibleMessages([]), ""],
    ["stand in a row", visibleMessages(second), "s u1 a1 u2 a2"],
    [
      "leave a superseded turn out",
      visibleMessages([...second, turn("3", "u3 a3", "2")]),
      "s u1 a1 u3 a3",
    ],
    [
      "leave a turn in the middle out",
      visibleMessages([...second, turn("3", "u3 a3"), turn("4", "u4 a4", "2")]),
      "s u1 a1 u3 a3 u4 a4",
    ],
    [
      "leave out a whole chain",
      visibleMessages([turn("1", "u1"), turn("2", "u2", "1"), turn("3", "u3", "2")]),
      "u3",
    ],
    [
      "keep the system prompt of a superseded first turn",
      visibleMessages([turn("1", "s u1 a1"), turn("2", "u2 a2", "1")]),
      "s u2 a2",
    ],
    ["leave out the turn that is about to be replaced", visibleMessages(second, "2"), "s u1 a1"],
    [
      "keep the system prompt of a first turn about to be replaced",
      visibleMessages([turn("1", "s u1 a1")], "1"),
      "s",
    ],
    ["don't mind an id that isn't there", visibleMessages([turn("1", "u1", "gone")], "none"), "u1"],
  ])("%s", (_title, visible, row) => {
    expect(contents(visible)).toBe(row);
  });

  test("are told for every turn, so that places stay what they are", () => {
    const turns = [turn("1", "s u1 a1"), turn("2", "u2 a2", "1"), turn("3", "u3", "2")];
    expect(visibleTurns(turns).map(({ messages }) => contents(messages))).toEqual(["s", "", "u3"]);
    expect(turns.map(({ messages }) => contents(messages))).toEqual(["s u1 a1", "u2 a2", "u3"]);
  });
});

describe("messages without turns", () => {
  test.each([
    ["", []],
    ["s", ["s"]],
    ["s u1 a1", ["s u1 a1"]],
    ["s u1 a1 a2 u2 a3", ["s u1 a1 a2", "u2 a3"]],
    ["u1 u2", ["u1", "u2"]],
    ["a1 u1 a2", ["a1", "u1 a2"]],
    ["s1 s2 u1", ["s1 s2 u1"]],
    ["u1 a1 s2 u2", ["u1 a1 s2", "u2"]],
  ])("%o are cut before each user message, the system prompt in the first turn", (row, turns) => {
    const messages = row === "" ? [] : row.split(" ").map(messageOf);
    expect(splitIntoTurns(messages).map(contents)).toEqual(turns);
  });

  test("are all kept, in order, in turns that aren't empty and have one user message at most", () => {
    fc.assert(
      fc.property(fc.array(anyMessage), (messages) => {
        const turns = splitIntoTurns(messages);
        deepStrictEqual(turns.flat(), messages);
        for (const part of turns) {
          expect(part.length).toBeGreaterThan(0);
          expect(part.filter(({ role }) => role === "user").length).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});
