import { describe, expect, test } from "vitest";
import { aiSdkModel } from "../../../lib/models/ai-sdk.ts";
import { ProviderError } from "../../../lib/models/errors.ts";
import { ASKED, signalOf } from "../contract.ts";
import { ask, finish, languageModel, type Stream, type StreamPart, text } from "./hand-made.ts";

const CALL: StreamPart = { type: "tool-call", toolCallId: "a", toolName: "add", input: "{}" };

describe("a stream", () => {
  const failures: readonly [string, readonly (StreamPart | Error)[]][] = [
    ["that breaks", [...text("five is"), new TypeError("terminated")]],
    [
      "that brings an error",
      [...text("five is"), { type: "error", error: new Error("oh") }, finish()],
    ],
    [
      "that brings an overload",
      [...text("five is"), { type: "error", error: { message: "busy", code: 529 } }],
    ],
    ["without a finish", [...text("five is"), CALL]],
    [
      "whose finish says that it broke off",
      [...text("five is"), finish({ unified: "interrupted", raw: undefined })],
    ],
    ["whose finish is an error", [...text("five is"), finish({ unified: "error", raw: "oops" })]],
    [
      "whose finish says error in the provider's word alone",
      [...text("five is"), finish({ unified: "other", raw: "error" })],
    ],
    [
      "whose finish has no word",
      [...text("five is"), finish({ unified: "other", raw: undefined })],
    ],
  ];
  test.each(failures)("%s is tried again, and what it told is void", async (_what, failure) => {
    const { reply, pieces } = await ask({ streams: [failure, [...text("fi", "ve"), finish()]] });
    expect(reply?.message).toMatchObject({ content: "five", toolCalls: [] });
    expect(pieces.slice(-3)).toEqual(["<restart>", "fi", "ve"]);
  });

  test("that told nothing is tried again without a word", async () => {
    const answer = [...text("five"), finish()];
    const { pieces } = await ask({ streams: [[], [...text("no")], [], answer] });
    expect(pieces).toEqual(["no", "<restart>", "five"]);
  });

  test.each(failures)("%s, time and again, is an error", async (_what, failure) => {
    const { error, asked } = await ask({ streams: Array.from({ length: 9 }, () => failure) });
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ isTransient: true, provider: "hand.made:tiny" });
    expect(asked).toHaveLength(4);
  });

  test.each([
    ["a code below 500", { message: "too long", code: 400 }],
    ["its type", { message: "too long", type: "invalid_request_error", code: null }],
    ["its word", Object.assign(new Error("too long"), { statusCode: 529, isRetryable: false })],
  ])("whose error is final by %s isn't tried again", async (_what, refusal) => {
    const { error, asked } = await ask({ streams: [[{ type: "error", error: refusal }]] });
    expect(error).toMatchObject({ isTransient: false, requestId: "r-1" });
    expect((error as Error).message).toContain("too long");
    expect(asked).toHaveLength(1);
  });

  test("tells no half of a character, wherever it is cut (R05)", async () => {
    const whole = "né😀\u{1F469}‍\u{1F4BB}";
    for (let at = 1; at < whole.length; at++) {
      const parts = [...text(whole.slice(0, at), whole.slice(at)), finish()];
      const { reply, pieces } = await ask({ streams: [parts] });
      expect(reply?.message.content).toBe(whole);
      expect(pieces.join("")).toBe(whole);
      expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
    }
    const { reply, pieces } = await ask({ streams: [[...text("ab", "\uD83D"), finish()]] });
    expect([reply?.message.content, pieces.join("")]).toEqual(["ab\uFFFD", "ab\uFFFD"]);
  });

  test("ends with the listener's own error, which isn't tried again", async () => {
    const own = new Error("the listener's");
    const onText = () => {
      throw own;
    };
    const { error, asked } = await ask({ streams: [[...text("five"), finish()]] }, { onText });
    expect(error).toBe(own);
    expect(asked).toHaveLength(1);
  });

  test("is let go where the signal aborts, even by a model that heeds no signal", async () => {
    const reason = new Error("enough");
    const { model } = languageModel({});
    const isCancelled = Promise.withResolvers<unknown>();
    const stream: Stream = new ReadableStream({
      start: (controller) => controller.enqueue({ type: "text-delta", id: "t", delta: "fi" }),
      cancel: isCancelled.resolve,
    });
    const controller = new AbortController();
    const deaf = aiSdkModel({ ...model, doStream: async () => ({ stream }) });
    const asked = deaf.complete(ASKED, [], {
      signal: controller.signal,
      onText: () => setImmediate(() => controller.abort(reason)),
    });
    await expect(asked).rejects.toBe(reason);
    expect(await isCancelled.promise).toBe(reason);
  });

  test("is let go where it brought an error, and would go on", async () => {
    const { model } = languageModel({});
    const isCancelled = Promise.withResolvers<void>();
    const stream: Stream = new ReadableStream({
      start: (controller) => controller.enqueue({ type: "error", error: { code: 400 } }),
      cancel: () => isCancelled.resolve(),
    });
    const failing = aiSdkModel({ ...model, doStream: async () => ({ stream }) });
    const asked = failing.complete(ASKED, [], { signal: signalOf(), onText: () => {} });
    await expect(asked).rejects.toBeInstanceOf(ProviderError);
    await isCancelled.promise;
  });

  test("that comes after the signal aborted is let go", async () => {
    const reason = new Error("enough");
    const { model } = languageModel({});
    const isCancelled = Promise.withResolvers<void>();
    const stream: Stream = new ReadableStream({ cancel: () => isCancelled.resolve() });
    const late = Promise.withResolvers<{ stream: Stream }>();
    const deaf = aiSdkModel({ ...model, doStream: () => late.promise });
    const controller = new AbortController();
    const asked = deaf.complete(ASKED, [], { signal: controller.signal, onText: () => {} });
    controller.abort(reason);
    await expect(asked).rejects.toBe(reason);
    late.resolve({ stream });
    await isCancelled.promise;
  });
});
