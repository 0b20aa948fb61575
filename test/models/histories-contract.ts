/** What every model behind a wire keeps of whatever stands in a history: its provider takes it. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Model } from "../../lib/agent/model.ts";
import { modelView, type Window } from "../../lib/agent/view.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { anyWholeMessage } from "../session/arbitraries.ts";
import { signalOf } from "./contract.ts";
import { type Provider, TOOLS } from "./provider-contract.ts";
import type { WireServer } from "./wire.ts";

const asks = (...ids: string[]): Message =>
  assistantMessage(
    "",
    ids.map((id) => ({ id, name: "add", arguments: { a: 1, b: 2 } })),
  );
const answers = (...ids: string[]): Message[] => ids.map((id) => toolMessage(id, `3 (${id})`));
const turn = (n: number, ...ids: string[]): Message[] => [
  userMessage(`question ${n}`),
  asks(...ids),
  ...answers(...ids),
  assistantMessage(`answer ${n}`),
];
const hi = userMessage("hi");

/** Histories that were left by crashes, limits and other providers. */
const LEFT: readonly [string, readonly Message[]][] = [
  ["A01 a call without its result at the end", [systemMessage("S"), hi, asks("t1")]],
  [
    "A03 three whole tool turns, and a fourth that broke off",
    [...turn(1, "a"), ...turn(2, "b"), ...turn(3, "c"), hi, asks("d", "e")],
  ],
  ["A04 one result of two", [hi, asks("a", "b"), ...answers("a")]],
  ["A10 a step limit in the middle: the results are the end", [hi, asks("a"), ...answers("a")]],
  ["A12 a system prompt for each turn", [systemMessage("1"), ...turn(1, "a"), systemMessage("2")]],
  ["results in another order than their calls", [hi, asks("a", "b"), ...answers("b", "a")]],
  ["a result that stands away from its call", [hi, asks("a"), hi, ...answers("a")]],
  ["results without a call", [...answers("x"), hi, ...answers("y"), assistantMessage("ok")]],
  [
    "an id twice in one message, and again later",
    [hi, asks("a", "a"), ...turn(2, "a"), ...turn(3, "a")],
  ],
  ["an interrupted turn", [hi, asks("a"), ...answers("a"), assistantMessage("(interrupted)")]],
  ["a greeting before any question", [assistantMessage("Welcome!"), hi]],
  ["nothing at all", []],
];

export const historiesContract = (name: string, provider: Provider): void => {
  describe(`histories that ${name} is sent`, () => {
    let server: WireServer;
    let model: Model;
    beforeAll(async () => {
      server = await provider.open();
      model = provider.model(server, { maxTries: 1 });
    });
    afterAll(() => server.close());

    /** As the agent asks behind a history, and the server answers if it takes it. */
    const asked = async (history: readonly Message[], window: Window = {}) => {
      server.answer({ kind: "reply", reply: { text: "five" } });
      const view = modelView([...history, userMessage("go on")], {
        window,
        provider: model.provider,
      });
      const { message } = await model.complete(view, TOOLS, { signal: signalOf() });
      expect(message.content).toBe("five");
      const { messages = [] } = server.requests.at(-1) ?? {};
      return messages;
    };

    test.each(LEFT)("are taken with %s", async (_what, history) => {
      const sent = await asked(history);
      const last = sent.at(-1);
      expect(last?.role === "user" && last.text).toMatch(/go on$/);
      const calls = sent.flatMap((it) => (it.role === "assistant" ? it.calls : []));
      expect(sent.filter(({ role }) => role === "tool")).toHaveLength(calls.length);
    });

    test("A07 are taken behind a window of any size", async () => {
      const history = [
        systemMessage("S"),
        ...Array.from({ length: 10 }, (_, n) => turn(n, `a${n}`, `b${n}`)).flat(),
      ];
      for (let turns = 0; turns <= 12; turns++) {
        const sent = await asked(history, { turns });
        expect(sent.filter(({ role }) => role === "user")).toHaveLength(Math.min(turns, 10) + 1);
        expect(sent.filter(({ role }) => role === "tool")).toHaveLength(Math.min(turns, 10) * 2);
      }
    });

    test("are taken whatever they hold", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(anyWholeMessage, { maxLength: 12 }), async (history) => {
          const own = history.map((message) =>
            message.providerData && model.provider
              ? { ...message, providerData: { ...message.providerData, provider: model.provider } }
              : message,
          );
          await asked(own);
        }),
        { numRuns: 200 },
      );
    });

    test("sends whole histories as the provider wants them", async () => {
      const call = (id: string, args: unknown) => ({ id, name: "add", arguments: args as never });
      const messages: Message[] = [
        systemMessage("Be kind."),
        userMessage("first"),
        assistantMessage("", [call("a", { a: 1, b: 2 }), call("b", "not json")]),
        toolMessage("a", "3"),
        toolMessage("b", ""),
        assistantMessage("three"),
        userMessage(""),
        assistantMessage(""),
        userMessage("second"),
        userMessage("and more"),
        assistantMessage("fine"),
        userMessage("third"),
      ];
      server.answer({ kind: "reply", reply: { text: "five" } });
      const { message } = await model.complete(messages, TOOLS, { signal: signalOf() });
      expect(message.content).toBe("five");
      const sent = server.requests.at(-1)?.messages ?? [];
      expect(sent.filter(({ role }) => role === "tool")).toMatchObject([
        { id: "a", text: "3" },
        { id: "b" },
      ]);
      expect(JSON.stringify(sent)).toContain("not json");
    });
  });
};
