/** What every model behind a wire keeps, with whatever comes over it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Model, ModelReply, ToolSpec } from "../../lib/agent/model.ts";
import { ProviderError } from "../../lib/models/errors.ts";
import type { RetryOptions } from "../../lib/models/retry.ts";
import { type Message, systemMessage, toolMessage } from "../../lib/session/message.ts";
import { ASKED, signalOf } from "./contract.ts";
import type { WireAnswer, WireReply, WireServer } from "./wire.ts";

export interface Provider {
  open(): Promise<WireServer>;
  /** With credentials that hold `SECRET`. */
  model(server: WireServer, retries: RetryOptions): Model;
  /** Whether it tells reasoning, with its signature. */
  readonly reasons: boolean;
  /** Whether arguments go over the wire as text, which may be anything: always, never, or in a stream alone. */
  readonly argumentsAreText: boolean | "streamed";
}

export const SECRET = "sk-of-ann-0123456789";

export const TOOLS: readonly ToolSpec[] = [
  {
    name: "add",
    description: "a plus b",
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
    },
  },
];

const USAGE = { inputTokens: 12, outputTokens: 34 };

export const providerContract = (name: string, provider: Provider): void => {
  describe(`${name} over the wire`, () => {
    let server: WireServer;
    let waits: number[] = [];
    let model: Model;
    beforeAll(async () => {
      server = await provider.open();
      model = provider.model(server, {
        random: () => 0,
        sleep: async (ms, signal) => {
          signal.throwIfAborted();
          waits.push(ms);
        },
      });
    });
    afterAll(() => server.close());

    interface Asked {
      readonly reply: ModelReply | undefined;
      readonly error: unknown;
      readonly pieces: readonly string[];
      readonly restarts: number;
      readonly requests: WireServer["requests"];
    }

    const ask = async (
      answers: readonly WireAnswer[],
      {
        messages = ASKED,
        streamed = false,
        signal = signalOf(),
      }: {
        readonly messages?: readonly Message[];
        readonly streamed?: boolean;
        readonly signal?: AbortSignal;
      } = {},
    ): Promise<Asked> => {
      waits = [];
      const before = server.requests.length;
      server.answer(...answers);
      const pieces: string[] = [];
      let restarts = 0;
      const listener = {
        onText: (delta: string) => pieces.push(delta),
        onRestart: () => {
          restarts++;
          pieces.length = 0;
        },
      };
      const asked = model.complete(messages, TOOLS, { signal, ...(streamed ? listener : {}) });
      const [outcome] = await Promise.allSettled([asked]);
      return {
        reply: outcome.status === "fulfilled" ? outcome.value : undefined,
        error: outcome.status === "rejected" ? outcome.reason : undefined,
        pieces,
        restarts,
        requests: server.requests.slice(before),
      };
    };
    const replies = (reply: WireReply): WireAnswer => ({ kind: "reply", reply });
    const refuses = (status: number, headers: Record<string, string> = {}): WireAnswer => ({
      kind: "refusal",
      status,
      headers,
      message: `no: ${SECRET} isn't welcome`,
    });
    const OK = replies({ text: "five", usage: USAGE });

    describe.each([
      ["at once", false],
      ["streamed", true],
    ])("%s", (_how, streamed) => {
      test("asks with system prompt, history and tools, and gets text, usage and why it ended", async () => {
        const messages = [systemMessage("Be kind."), ...ASKED];
        const { reply, pieces, requests } = await ask([OK], { messages, streamed });
        expect(reply).toMatchObject({ message: { content: "five", toolCalls: [] }, usage: USAGE });
        expect(reply?.finishReason).toMatch(/stop|end_turn/);
        expect(pieces.join("")).toBe(streamed ? "five" : "");
        expect(requests).toMatchObject([
          {
            streamed,
            system: "Be kind.",
            messages: [{ role: "user", text: "What is 2 + 3?" }],
            tools: TOOLS,
          },
        ]);
      });

      test("gets several tool calls of one message, in order, with text before them", async () => {
        const calls = [
          { id: "c1", name: "add", arguments: '{"a":2,"b":3}' },
          { id: "c2", name: "constructor", arguments: '{"__proto__":{"x":1},"é😀":["\\u0000"]}' },
          { id: "c3", name: "add", arguments: "{}" },
        ];
        const { reply } = await ask([replies({ text: "I add", calls, usage: USAGE })], {
          streamed,
        });
        expect(reply?.message).toMatchObject({ role: "assistant", content: "I add" });
        expect(reply?.message.toolCalls).toStrictEqual(
          calls.map(({ id, name: called, arguments: text }) => ({
            id,
            name: called,
            arguments: JSON.parse(text) as unknown,
          })),
        );
        expect(reply?.finishReason).toMatch(/tool/);
      });

      test("a call without an id gets one of its own", async () => {
        const calls = [
          { name: "add", arguments: "{}" },
          { name: "add", arguments: "{}" },
        ];
        const { reply } = await ask([replies({ calls })], { streamed });
        const ids = reply?.message.toolCalls.map(({ id }) => id) ?? [];
        expect(ids.every((id) => id !== "")).toBe(true);
        expect(new Set(ids).size).toBe(2);
      });

      test("a reply in pieces of any size comes out right", async () => {
        const text = "né😀 中文 \u{1F469}‍\u{1F4BB} end";
        const calls = [{ id: "c1", name: "add", arguments: '{"a":"né😀"}' }];
        for (const pieceBytes of [1, 2, 3, 5, 7]) {
          const answer = { ...replies({ text, calls }), pieceBytes } as WireAnswer;
          const { reply, pieces } = await ask([answer], { streamed });
          expect(reply?.message.content).toBe(text);
          expect(reply?.message.toolCalls[0]?.arguments).toEqual({ a: "né😀" });
          expect(pieces.join("")).toBe(streamed ? text : "");
        }
      });

      test("an answer without text or calls is an empty message", async () => {
        const { reply } = await ask([replies({ text: "" })], { streamed });
        expect(reply?.message).toMatchObject({ content: "", toolCalls: [] });
      });

      test("a slow first byte is waited for", async () => {
        const { reply } = await ask([{ kind: "reply", reply: { text: "five" }, delayMs: 300 }], {
          streamed,
        });
        expect(reply?.message.content).toBe("five");
      });

      const failures: readonly [string, WireAnswer][] = [
        ["429", refuses(429)],
        ["500", refuses(500)],
        ["503", refuses(503)],
        ["529", refuses(529)],
        ["a connection that breaks before the answer", { kind: "reset" }],
        ["a connection that breaks in the answer", { kind: "reset", reply: { text: "five is" } }],
        ["an answer that is cut", { kind: "cut", reply: { text: "five is" }, at: "middle" }],
        [
          "tool arguments that are cut with the answer",
          {
            kind: "cut",
            reply: { calls: [{ id: "c", name: "add", arguments: '{"a":2,"b":3}' }] },
            at: "middle",
          },
        ],
        ["an answer that is no answer", { kind: "garbage" }],
      ];
      test.each(failures)("%s is tried again, with one user message", async (_what, failure) => {
        const { reply, pieces, requests } = await ask([failure, failure, OK], { streamed });
        expect(reply).toMatchObject({ message: { content: "five" }, usage: USAGE });
        expect(pieces.join("")).toBe(streamed ? "five" : "");
        expect(waits).toEqual([250, 500]);
        expect(requests).toHaveLength(3);
        for (const { messages } of requests) {
          expect(messages).toEqual([{ role: "user", text: "What is 2 + 3?" }]);
        }
      });

      test.each(failures)("%s, time and again, is an error", async (_what, failure) => {
        const { reply, error, requests } = await ask([failure, failure, failure, failure], {
          streamed,
        });
        expect(reply).toBeUndefined();
        expect(error).toBeInstanceOf(ProviderError);
        expect(error).toMatchObject({ isTransient: true, provider: model.provider });
        expect(requests).toHaveLength(4);
      });

      test.each([400, 401, 403, 404, 413, 422])("%i isn't tried again", async (status) => {
        const { error, requests } = await ask([refuses(status, { "x-request-id": "r-1" })], {
          streamed,
        });
        expect(error).toBeInstanceOf(ProviderError);
        expect(error).toMatchObject({ isTransient: false, status });
        expect(requests).toHaveLength(1);
        expect(waits).toEqual([]);
      });

      test("an error says provider, status and request, and leaks no key", async () => {
        const headers = { "x-request-id": "r-1", "x-amzn-requestid": "r-1" };
        const { error } = await ask([refuses(401, headers)], { streamed });
        expect(error).toMatchObject({ status: 401, requestId: "r-1", provider: model.provider });
        const { message } = error as Error;
        for (const part of [model.provider, "401", "r-1"]) expect(message).toContain(part);
        expect(message).not.toContain(SECRET);
      });

      test("what the provider asks to wait is waited, and no more than a while", async () => {
        const soon = refuses(429, { "retry-after": "7" });
        expect((await ask([soon, OK], { streamed })).reply).toBeDefined();
        expect(waits).toEqual([7000]);
        const late = refuses(429, { "retry-after": "3600" });
        const { error } = await ask([late], { streamed });
        expect(error).toMatchObject({ status: 429, retryAfterMs: 3_600_000 });
        expect(waits).toEqual([]);
      });

      test("no answer at all is waited for until the signal aborts, and the connection is let go", async () => {
        const controller = new AbortController();
        const reason = new Error("enough");
        const before = server.requests.length;
        const asked = ask([{ kind: "silence" }], { streamed, signal: controller.signal });
        await expect.poll(() => server.requests[before]?.isAborted()).toBe(false);
        controller.abort(reason);
        const { error, requests } = await asked;
        expect(error).toBe(reason);
        await expect.poll(() => requests.at(-1)?.isAborted()).toBe(true);
      });

      test("arguments that are no object are kept as they are", async () => {
        const { argumentsAreText } = provider;
        if (argumentsAreText === "streamed" ? !streamed : !argumentsAreText) return;
        const cases: readonly [string, unknown][] = [
          ["", {}],
          ['{"a":2,"b', '{"a":2,"b'],
          ['```json\n{"a":2}\n```', '```json\n{"a":2}\n```'],
          ['"{\\"a\\":2}"', '{"a":2}'],
          ["[1]", [1]],
          ["null", null],
          ['{"a":9007199254740993}', '{"a":9007199254740993}'],
        ];
        for (const [text, given] of cases) {
          const calls = [{ id: "c", name: "add", arguments: text }];
          const { reply } = await ask([replies({ calls, finish: "length" })], { streamed });
          expect(reply?.message.toolCalls).toStrictEqual([
            { id: "c", name: "add", arguments: given },
          ]);
        }
      });

      test("reasoning comes back with the call that it led to, signed", async () => {
        if (!provider.reasons) return;
        const reasoning = { text: "2 + 3 is … né😀", signature: "c2lnbmVk" };
        const calls = [{ id: "c1", name: "add", arguments: '{"a":2,"b":3}' }];
        const first = await ask([replies({ reasoning, text: "I add", calls })], { streamed });
        const { message } = first.reply ?? {};
        expect(message).toMatchObject({
          content: "I add",
          providerData: { provider: model.provider },
        });
        if (!message) return;
        const messages = [...ASKED, structuredClone(message), toolMessage("c1", "5")];
        const { requests } = await ask([OK], { messages, streamed });
        expect(requests[0]?.messages[1]).toMatchObject({
          role: "assistant",
          text: "I add",
          reasoning,
        });
      });
    });

    test("a stream without its end mark is no answer, and what it told is void", async () => {
      const cut: WireAnswer = { kind: "cut", reply: { text: "five is" }, at: "end mark" };
      const { reply, restarts, pieces } = await ask([cut, OK], { streamed: true });
      expect(reply?.message.content).toBe("five");
      expect([restarts, pieces.join("")]).toEqual([1, "five"]);
      const { error } = await ask([cut, cut, cut, cut], { streamed: true });
      expect(error).toBeInstanceOf(ProviderError);
    });

    test("many calls at once don't mix", async () => {
      const texts = Array.from({ length: 20 }, (_, n) => `answer ${n}`);
      server.answer(...texts.map((text) => replies({ text })));
      const got = await Promise.all(
        texts.map(() => model.complete(ASKED, TOOLS, { signal: signalOf() })),
      );
      expect(new Set(got.map(({ message }) => message.content))).toEqual(new Set(texts));
    });
  });
};
