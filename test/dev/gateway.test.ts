import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Gateway, type GatewayOptions, startGateway } from "../../dev/gateway.ts";
import { type Sent, send } from "./send.ts";

const OK = { statusCode: 200, body: "" };

type Running = Gateway & { lines: string[]; errors: unknown[] };

async function serve(
  handler: GatewayOptions["handler"],
  options: Partial<GatewayOptions> = {},
): Promise<Running> {
  const lines: string[] = [];
  const errors: unknown[] = [];
  const gateway = await startGateway({
    handler,
    port: 0,
    timeoutMs: 20_000,
    log: { info: (line: string) => lines.push(line), error: (error) => errors.push(error) },
    ...options,
  });
  onTestFinished(() => gateway.close());
  return { ...gateway, lines, errors };
}

/** What the handler gets for a request. */
async function eventFor(path: string, sent: Sent = {}): Promise<APIGatewayProxyEvent> {
  const events: APIGatewayProxyEvent[] = [];
  const { url } = await serve((event) => {
    events.push(event);
    return OK;
  });
  await send(url, path, sent);
  const [event] = events;
  if (event === undefined) throw new Error("The handler was not called.");
  return event;
}

describe("the event", () => {
  test.each([
    ["a plain path", "/v1/sessions/a", "/v1/sessions/a"],
    ["percent-encoding, as sent", "/v1/caf%C3%A9%2fx", "/v1/caf%C3%A9%2fx"],
    ["a bad percent sequence (H02)", "/v1/%zz/%", "/v1/%zz/%"],
    ["a cut UTF-8 sequence (H02)", "/v1/%E0%A4%A", "/v1/%E0%A4%A"],
    ["a trailing slash (H03)", "/v1/sessions/", "/v1/sessions/"],
    ["a doubled slash (H03)", "//v1/sessions", "//v1/sessions"],
    ["a whole URL as the target", "http://example.org/v1/x?a=1", "/v1/x"],
    ["a query that holds a question mark", "/v1/x?a=?", "/v1/x"],
  ])("has the path as it was sent: %s", async (_, target, path) => {
    const event = await eventFor(target);
    expect(event).toMatchObject({ path, resource: "/{proxy+}" });
    expect(event.pathParameters).toEqual({ proxy: path.slice(1) });
    expect(event.requestContext).toMatchObject({ path, resourcePath: "/{proxy+}" });
  });

  test("has no path parameters at the root", async () => {
    expect(await eventFor("/?a=1")).toMatchObject({
      path: "/",
      resource: "/",
      pathParameters: null,
    });
  });

  test.each([
    ["/x", null],
    ["/x?", null],
    ["/x?&&", null],
    ["/x?limit=5", { limit: ["5"] }],
    ["/x?a=1&b=2&a=3", { a: ["1", "3"], b: ["2"] }],
    ["/x?a=x%20y+z%2B", { a: ["x y z+"] }],
    ["/x?caf%C3%A9=%F0%9F%98%80", { café: ["😀"] }],
    ["/x?a", { a: [""] }],
    ["/x?a=b=c", { a: ["b=c"] }],
    ["/x?=1", { "": ["1"] }],
    ["/x?a=%zz&b=%E0%A4%A&c=%", { a: ["%zz"], b: ["%E0%A4%A"], c: ["%"] }],
    [
      "/x?__proto__=1&constructor=2",
      Object.fromEntries([
        ["__proto__", ["1"]],
        ["constructor", ["2"]],
      ]),
    ],
  ])("has the query decoded, null without one: %s", async (target, expected) => {
    const event = await eventFor(target);
    expect(event.multiValueQueryStringParameters).toEqual(expected);
    const last = Object.entries(expected ?? {}).map(([name, values]) => [name, values.at(-1)]);
    expect(event.queryStringParameters).toEqual(expected && Object.fromEntries(last));
    expect(Object.keys(event.queryStringParameters ?? {})).toEqual(Object.keys(expected ?? {}));
  });

  test("keeps the case of header names, and gives every value of a repeated one", async () => {
    const event = await eventFor("/x", {
      headers: ["X-oDD-Case", "1", "Accept", "a", "accept", "b", "X-Empty", ""],
    });
    expect(event.multiValueHeaders).toMatchObject({
      "X-oDD-Case": ["1"],
      Accept: ["a", "b"],
      "X-Empty": [""],
    });
    expect(event.headers).toMatchObject({ "X-oDD-Case": "1", Accept: "b", "X-Empty": "" });
    expect(Object.keys(event.headers)).not.toContain("accept");
  });

  const GZIP = Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0xff]);
  test.each([
    ["none", {}, { body: null, isBase64Encoded: false }],
    ["an empty one", { body: "" }, { body: null, isBase64Encoded: false }],
    ["JSON", { body: '{"a":1}' }, { body: '{"a":1}', isBase64Encoded: false }],
    ["UTF-8", { body: "né😀" }, { body: "né😀", isBase64Encoded: false }],
    ["a byte order mark (H04)", { body: "\ufeff{}" }, { body: "\ufeff{}", isBase64Encoded: false }],
    ["bytes (H05)", { body: GZIP }, { body: "H4sIAP8=", isBase64Encoded: true }],
  ])("has the body as text, in base64 only where it is not: %s", async (_, sent, expected) => {
    expect(await eventFor("/x", { method: "POST", ...sent })).toMatchObject(expected);
  });

  test("names the method, the stage, the caller's address, and a request id of its own", async () => {
    const seen: [APIGatewayProxyEvent, Context][] = [];
    const { url } = await serve((event, context) => {
      seen.push([event, context]);
      return OK;
    });
    await send(url, "/x", { method: "DELETE", headers: ["User-Agent", "test"] });
    await send(url, "/x", { method: "DELETE" });
    const [[event, context] = [], [second] = []] = seen;
    expect(event).toMatchObject({
      httpMethod: "DELETE",
      stageVariables: null,
      requestContext: {
        httpMethod: "DELETE",
        stage: "local",
        identity: { sourceIp: "127.0.0.1", userAgent: "test" },
      },
    });
    expect(event?.requestContext.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    expect(event?.requestContext.requestId).toBe(context?.awsRequestId);
    expect(event?.requestContext.requestId).not.toBe(second?.requestContext.requestId);
  });

  test("can be written as JSON without a change, as Lambda passes it", async () => {
    const event = await eventFor("/x?a=1", { method: "POST", body: "{}" });
    expect(JSON.parse(JSON.stringify(event))).toStrictEqual(event);
  });
});

describe("the owner (X01)", () => {
  test.each([
    ["the default without the header", [], "local"],
    ["the default where the header is empty", ["x-dev-owner", ""], "local"],
    ["the header, however it is spelled", ["X-DEV-Owner", "ann"], "ann"],
    ["the first of two", ["x-dev-owner", "ann", "x-dev-owner", "bob"], "ann"],
  ])("is %s, and the functions see it in the authorizer only", async (_, headers, owner) => {
    const event = await eventFor("/x", { headers });
    expect(event.requestContext.authorizer).toEqual({ owner });
    const names = [...Object.keys(event.headers), ...Object.keys(event.multiValueHeaders)];
    expect(names.map((name) => name.toLowerCase())).not.toContain("x-dev-owner");
  });

  test("has a default that can be chosen", async () => {
    const owners: unknown[] = [];
    const { url } = await serve(
      (event) => {
        owners.push(event.requestContext.authorizer?.["owner"]);
        return OK;
      },
      { defaultOwner: "me" },
    );
    await send(url, "/x");
    expect(owners).toEqual(["me"]);
  });
});

describe("the context", () => {
  test("counts down from the function's timeout", async () => {
    const remaining: number[] = [];
    const { url } = await serve(async (_, context) => {
      remaining.push(context.getRemainingTimeInMillis());
      await new Promise((resolve) => setTimeout(resolve, 30));
      remaining.push(context.getRemainingTimeInMillis());
      return OK;
    });
    await send(url, "/x");
    const [before = 0, after = 0] = remaining;
    expect(before).toBeLessThanOrEqual(20_000);
    expect(after).toBeLessThan(before);
    expect(after).toBeGreaterThanOrEqual(0);
  });
});

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

describe("a body over Lambda's limit", () => {
  const LIMIT = 6 * 1024 * 1024;
  const TOO_LONG = [413, '{"message":"Request Too Long"}'];

  async function replyTo(sent: Sent) {
    let calls = 0;
    const { url } = await serve(() => {
      calls += 1;
      return OK;
    });
    const reply = await send(url, "/x", { method: "POST", ...sent });
    return { answer: [reply.status, reply.text], calls };
  }

  test("is a 413, and the handler is not called", async () => {
    expect(await replyTo({ body: Buffer.alloc(LIMIT + 1, "a") })).toEqual({
      answer: TOO_LONG,
      calls: 0,
    });
  });

  test("is a 413 where only the event around it is over the limit", async () => {
    expect((await replyTo({ body: '"'.repeat(LIMIT / 2) })).answer).toEqual(TOO_LONG);
    expect((await replyTo({ body: Buffer.alloc(LIMIT * 0.8, 0xff) })).answer).toEqual(TOO_LONG);
  });

  test("is answered to a client that sends without end", async () => {
    const { url } = await serve(() => OK);
    const socket = await open(url);
    socket.write("POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = `10000\r\n${"a".repeat(0x10000)}\r\n`;
    const pour = (): void => {
      while (socket.writable && socket.write(chunk));
      socket.once("drain", pour);
    };
    pour();
    const answer: unknown[] = await once(socket, "data");
    expect(String(answer[0])).toMatch(/^HTTP\/1\.1 413 /);
  });

  test("leaves one just below it alone", async () => {
    expect((await replyTo({ body: Buffer.alloc(LIMIT - 10_000, "a") })).calls).toBe(1);
  });
});

describe("a client that goes away", () => {
  test("in mid-body is logged, the handler is not called, and the others are served", async () => {
    let calls = 0;
    const gateway = await serve(() => {
      calls += 1;
      return OK;
    });
    const socket = await open(gateway.url);
    socket.write("POST /gone HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
    await send(gateway.url, "/first");
    socket.destroy();
    await expect
      .poll(() => gateway.lines)
      .toContainEqual(expect.stringMatching(/^POST \/gone 499 /));
    expect((await send(gateway.url, "/second")).status).toBe(200);
    expect(calls).toBe(2);
    expect(gateway.errors).toEqual([]);
  });

  test("during the turn leaves the handler to finish, as on Lambda (R02)", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve((event) => {
      if (event.path !== "/gone") return OK;
      started.resolve();
      return answer.promise;
    });
    const socket = await open(gateway.url);
    socket.write("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
    await started.promise;
    socket.destroy();
    await once(socket, "close");
    answer.resolve({ statusCode: 200, body: "nobody reads this" });
    await expect
      .poll(() => gateway.lines)
      .toContainEqual(expect.stringMatching(/^GET \/gone 200 /));
    expect((await send(gateway.url, "/x")).status).toBe(200);
    expect(gateway.errors).toEqual([]);
  });
});

describe("the log", () => {
  test("has one line a request: method, path, status, time, owner", async () => {
    const gateway = await serve(() => ({ statusCode: 404, body: "" }));
    await send(gateway.url, "/v1/caf%C3%A9?token=1", {
      method: "PUT",
      headers: ["x-dev-owner", "ann"],
    });
    expect(gateway.lines).toEqual([expect.stringMatching(/^PUT \/v1\/caf%C3%A9 404 \d+ ms ann$/)]);
  });

  test("shows control characters in an owner as escapes", async () => {
    const gateway = await serve(() => OK);
    await send(gateway.url, "/x", { headers: ["x-dev-owner", "a\tb\u0085c"] });
    expect(gateway.lines).toEqual([expect.stringMatching(/ms a\\u\{9\}b\\u\{85\}c$/)]);
  });
});

describe("close", () => {
  test("refuses new connections and lets a running request finish", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve(() => {
      started.resolve();
      return answer.promise;
    });
    const running = send(gateway.url, "/x");
    await started.promise;
    const closed = gateway.close();
    await expect(send(gateway.url, "/x")).rejects.toThrow(/ECONNREFUSED/);
    answer.resolve({ statusCode: 200, body: "finished" });
    expect((await running).text).toBe("finished");
    await closed;
  });

  test("ends a connection that is only kept alive", async () => {
    const gateway = await serve(() => OK);
    const socket = await open(gateway.url);
    socket.write("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    const ended = once(socket, "close");
    await gateway.close();
    await ended;
  });

  test("waits for a handler whose client has left", async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<unknown>();
    const gateway = await serve(() => {
      started.resolve();
      return answer.promise;
    });
    const socket = await open(gateway.url);
    socket.write("GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    await started.promise;
    socket.destroy();
    await once(socket, "close");
    let isClosed = false;
    const closed = gateway.close().then(() => {
      isClosed = true;
    });
    // A round trip through the timers and the sockets, in which a close() that doesn't wait is done.
    await expect(send(gateway.url, "/x")).rejects.toThrow();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isClosed).toBe(false);
    answer.resolve(OK);
    await closed;
  });

  test("gives up on a request that doesn't finish within the grace", async () => {
    const started = Promise.withResolvers<void>();
    const gateway = await serve(
      () => {
        started.resolve();
        return new Promise(() => {});
      },
      { closeGraceMs: 50 },
    );
    const running = send(gateway.url, "/x");
    const failed = expect(running).rejects.toThrow();
    await started.promise;
    await gateway.close();
    await failed;
  });
});

test("a port that is taken is an error at the start", async () => {
  const { url } = await serve(() => OK);
  const port = Number(new URL(url).port);
  await expect(serve(() => OK, { port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  // A reset is what some of these tests are about.
  socket.on("error", () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, "connect");
  return socket;
}
