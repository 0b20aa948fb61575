import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import { describe, expect, test } from "vitest";
import { type Sent, send } from "./send.ts";
import { OK, serve } from "./serve.ts";

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
