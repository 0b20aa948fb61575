import { describe, expect, test } from "vitest";
import { type Sent, send } from "./send.ts";
import { OK, serve } from "./serve.ts";

describe("the answer", () => {
  async function replyTo(result: unknown, sent: Sent = {}) {
    const gateway = await serve(() => result);
    return { ...(await send(gateway.url, "/x", sent)), errors: gateway.errors };
  }

  test("is the status, the headers and the body that the handler returned", async () => {
    const reply = await replyTo({
      statusCode: 201,
      headers: { "Content-Type": "text/plain; charset=utf-8", ETag: '"1.0"', "x-count": 3 },
      body: "né😀",
    });
    expect(reply).toMatchObject({ status: 201, text: "né😀", errors: [] });
    expect(reply.headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-length": "7",
      etag: '"1.0"',
      "x-count": "3",
    });
  });

  test("has every value of a multi-value header, which wins over a single one", async () => {
    const reply = await replyTo({
      statusCode: 200,
      headers: { "X-Both": "single", "X-Single": "kept" },
      multiValueHeaders: { "x-both": ["1", "2"], "Set-Cookie": ["a=1", "b=2"] },
      body: "",
    });
    expect(reply.headersDistinct["x-both"]).toEqual(["1", "2"]);
    expect(reply.headersDistinct["set-cookie"]).toEqual(["a=1", "b=2"]);
    expect(reply.headersDistinct["x-single"]).toEqual(["kept"]);
  });

  test("is JSON where the handler doesn't say, as with the service", async () => {
    expect((await replyTo({ statusCode: 200, body: "{}" })).headers["content-type"]).toBe(
      "application/json",
    );
  });

  test("has bytes where the handler returned base64", async () => {
    const bytes = Buffer.from([0, 255, 1, 254]);
    const reply = await replyTo({
      statusCode: 200,
      body: bytes.toString("base64"),
      isBase64Encoded: true,
    });
    expect(reply.bytes).toEqual(bytes);
  });

  test("carries no body for HEAD, but its length", async () => {
    const reply = await replyTo({ statusCode: 200, body: "hello" }, { method: "HEAD" });
    expect(reply).toMatchObject({ status: 200, text: "" });
    expect(reply.headers["content-length"]).toBe("5");
  });

  test.each([204, 304])("carries neither body nor length with a %i", async (statusCode) => {
    const reply = await replyTo({ statusCode, headers: { etag: '"1"' }, body: "" });
    expect(reply).toMatchObject({ status: statusCode, text: "" });
    expect(reply.headers["content-length"]).toBeUndefined();
    expect(reply.headers.etag).toBe('"1"');
  });

  test("keeps its own framing, whatever headers the handler set", async () => {
    const headers = { "Content-Length": "999", "Transfer-Encoding": "chunked", Connection: "x" };
    const reply = await replyTo({ statusCode: 200, headers, body: "hello" });
    expect(reply.text).toBe("hello");
    expect(reply.headers["content-length"]).toBe("5");
  });

  test.each([
    ["nothing", undefined, /result must be an object/],
    ["a list", [], /result must be an object/],
    ["a text", "hello", /result must be an object/],
    ["no status", { body: "" }, /statusCode .* undefined/],
    ["a status as text", { statusCode: "200", body: "" }, /statusCode .* "200"/],
    ["a status that is none", { statusCode: 99, body: "" }, /statusCode .* 99/],
    ["a body that is an object", { statusCode: 200, body: { a: 1 } }, /body must be a string/],
    ["a header that is a list", { statusCode: 200, headers: { a: ["b"] }, body: "" }, /Header a/],
    ["a header that is null", { statusCode: 200, headers: { a: null }, body: "" }, /Header a/],
    ["a line break in a header", { statusCode: 200, headers: { a: "b\r\nc: d" } }, /Header a/],
    ["a space in a header's name", { statusCode: 200, headers: { "a b": "c" } }, /Header a b/],
    ["headers that are a text", { statusCode: 200, headers: "a: b" }, /headers must be an object/],
    ["a multi-value header with one", { statusCode: 200, multiValueHeaders: { a: "b" } }, /a list/],
    ["a BigInt", { statusCode: 200, body: "", extra: 1n }, /BigInt/],
    ["6 MB of quotes (H10)", { statusCode: 200, body: '"'.repeat(3.1 * 1024 * 1024) }, /6 MB/],
  ])(
    "is a 502 with the reason printed where the result is malformed (H11): %s",
    async (_, result, reason) => {
      const reply = await replyTo(result);
      expect(reply.status).toBe(502);
      expect(JSON.parse(reply.text)).toEqual({ message: "Internal server error" });
      expect(reply.errors.map(String)).toEqual([expect.stringMatching(reason)]);
    },
  );

  test("leaves out what JSON can't say, as the service never sees it", async () => {
    const headers = { kept: "1", dropped: undefined };
    const reply = await replyTo({ statusCode: 200, headers, body: undefined });
    expect(reply).toMatchObject({ status: 200, text: "", errors: [] });
    expect(reply.headers).toMatchObject({ kept: "1" });
    expect(reply.headers).not.toHaveProperty("dropped");
  });
});

describe("a handler that fails", () => {
  const BOOM = new Error("boom");
  test.each([
    [
      "throws",
      () => {
        throw BOOM;
      },
    ],
    [
      "rejects",
      async () => {
        await Promise.resolve();
        throw BOOM;
      },
    ],
  ])("is a 502 with the error printed, and the next request is served: it %s", async (_, fail) => {
    let calls = 0;
    const gateway = await serve(() => (++calls === 1 ? fail() : OK));
    const reply = await send(gateway.url, "/x");
    expect([reply.status, reply.text]).toEqual([502, '{"message":"Internal server error"}']);
    expect(gateway.errors).toEqual([BOOM]);
    expect((await send(gateway.url, "/x")).status).toBe(200);
  });

  test("is a 504 when it outlives its timeout, whatever comes of it later", async () => {
    const late = Promise.withResolvers<unknown>();
    const gateway = await serve(() => late.promise, { timeoutMs: 50 });
    const reply = await send(gateway.url, "/x");
    expect([reply.status, reply.text]).toEqual([504, '{"message":"Endpoint request timed out"}']);
    expect(gateway.errors).toEqual([expect.stringContaining("0.05 s")]);
    late.reject(new Error("too late for anyone"));
    expect((await send(gateway.url, "/x")).status).toBe(502);
  });
});
