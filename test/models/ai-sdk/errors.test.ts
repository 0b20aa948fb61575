import { describe, expect, test } from "vitest";
import { ProviderError } from "../../../lib/models/errors.ts";
import { ask } from "./hand-made.ts";

describe("an error", () => {
  const refusal = (fields: object) => Object.assign(new Error("no"), fields);
  const at = Date.parse("2026-01-01T00:00:00Z");

  test.each([
    [
      "a quota that is used up",
      { statusCode: 429, isRetryable: true, data: { error: { code: "insufficient_quota" } } },
    ],
    ["a status that isn't for another try", { statusCode: 400, isRetryable: false }],
    ["a fault of the model's own", {}],
    ["what the provider calls so", { isRetryable: false, cause: refusal({ code: "ECONNRESET" }) }],
    ["a key that is missing", { name: "AI_LoadAPIKeyError" }],
  ])("is final for %s", async (_what, fields) => {
    const { error, asked } = await ask({ contents: [refusal(fields), []] });
    expect(error).toBeInstanceOf(ProviderError);
    expect(error).toMatchObject({ isTransient: false });
    expect(asked).toHaveLength(1);
  });

  test.each([
    ["too early", { statusCode: 425, isRetryable: false }],
    ["what the provider calls so", { statusCode: 400, isRetryable: true }],
    ["what the provider calls so, without a status", { isRetryable: true }],
    ["an answer that broke", { statusCode: 200, isRetryable: false }],
    ["a connection that broke", { cause: refusal({ code: "ECONNRESET" }) }],
    ["the provider's own time limit", { name: "TimeoutError" }],
    ["an answer that makes no sense", { name: "AI_InvalidResponseDataError" }],
  ])("is tried again for %s", async (_what, fields) => {
    const { reply, asked } = await ask({ contents: [refusal(fields), []] });
    expect(reply).toBeDefined();
    expect(asked).toHaveLength(2);
  });

  test("waits until the date that Retry-After names", async () => {
    const waits: number[] = [];
    const headers = { "Retry-After": "Thu, 01 Jan 2026 00:00:09 GMT" };
    const busy = refusal({ statusCode: 503, responseHeaders: headers });
    const sleep = async (ms: number) => void waits.push(ms);
    await ask({ contents: [busy, []] }, { now: () => at, sleep });
    expect(waits).toEqual([9000]);
  });

  test("shows no secret, none of what looks like one, and no whole answer", async () => {
    const words = "no hunter2-hunter2 nor sk-abc***xyz nor Bearer abcd.efgh but this";
    const quoting = refusal({ message: words, statusCode: 400, isRetryable: false });
    const { error } = await ask({ contents: [quoting] }, { secrets: ["hunter2-hunter2"] });
    expect((error as Error).message).toBe(
      "hand.made:tiny answered 400: no [hidden] nor [hidden] nor [hidden] but this",
    );
    const long = refusal({ name: "AI_TypeValidationError", message: `Value: ${"x".repeat(9999)}` });
    const { error: short } = await ask({ contents: [long] }, { maxTries: 1 });
    expect((short as Error).message.length).toBeLessThan(200);
  });
});
