import { describe, expect, test } from "vitest";
import type { HttpHandler } from "../../lib/http/handler.ts";
import { call, MAX_ANSWER_BYTES, type Reply, type Sent, service } from "../support/http.ts";

const messages = (id: string, query: Record<string, string> = {}): Sent => ({
  method: "GET",
  path: `/v1/sessions/${id}/messages`,
  query,
});

const turn = (id: string, input: string, fields: object = {}): Sent => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  headers: { "idempotency-key": input },
  body: { input, ...fields },
});

/** A session "s" of the turns named, each a user's message of that text and an "ok". */
const talk = async (inputs: readonly string[]): Promise<HttpHandler> => {
  const { handler } = service();
  for (const input of inputs) await call(handler, turn("s", input));
  return handler;
};

const contents = ({ json }: Reply): string[] =>
  (json["data"] as { content: string }[]).map(({ content }) => content);

const cursorOf = ({ json }: Reply): string => String(json["next_cursor"]);

const pages = async (
  handler: HttpHandler,
  query: Record<string, string>,
  id = "s",
): Promise<Reply[]> => {
  const replies = [await call(handler, messages(id, query))];
  for (let last = replies[0]; last?.json["has_more"]; replies.push(last)) {
    last = await call(handler, messages(id, { ...query, cursor: cursorOf(last) }));
    if (replies.length > 100) throw new Error("the pages don't end");
  }
  return replies;
};

describe("GET /v1/sessions/{id}/messages", () => {
  test("gives the messages oldest first, in the form that snapshots have", async () => {
    const handler = await talk(["one", "two"]);
    const reply = await call(handler, messages("s"));
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      data: [
        { role: "user", content: "one", tool_calls: [], tool_call_id: null },
        { role: "assistant", content: "ok", tool_calls: [], tool_call_id: null },
        { role: "user", content: "two", tool_calls: [], tool_call_id: null },
        { role: "assistant", content: "ok", tool_calls: [], tool_call_id: null },
      ],
      has_more: false,
      next_cursor: null,
    });
  });

  test("gives an empty page for a session without turns", async () => {
    const { handler } = service();
    await call(handler, { method: "POST", path: "/v1/sessions", body: { session_id: "s" } });
    const { json } = await call(handler, messages("s"));
    expect(json).toEqual({ data: [], has_more: false, next_cursor: null });
  });

  test.each(
    ["asc", "desc"].flatMap((order) => [1, 2, 3, 5, 6, 7].map((limit) => [order, limit] as const)),
  )("gives each message once, in order %s, page by page of %i", async (order, limit) => {
    const handler = await talk(["one", "two", "three"]);
    const expected = ["one", "ok", "two", "ok", "three", "ok"];
    if (order === "desc") expected.reverse();
    const replies = await pages(handler, { order, limit: String(limit) });
    expect(replies.flatMap(contents)).toEqual(expected);
    expect(replies.map((reply) => contents(reply).length)).toEqual(
      Array.from({ length: Math.ceil(6 / limit) }, (_, page) => Math.min(limit, 6 - page * limit)),
    );
  });

  test("gives 100 messages without a limit, and up to 1000 with one", async () => {
    const handler = await imported(Array.from({ length: 1002 }, (_, index) => String(index)));
    expect(contents(await call(handler, messages("s")))).toHaveLength(100);
    expect(contents(await call(handler, messages("s", { limit: "1000" })))).toHaveLength(1000);
  });

  test("goes on where it was when turns came meanwhile, in either order", async () => {
    const handler = await talk(["one", "two"]);
    const up = await call(handler, messages("s", { limit: "3" }));
    const down = await call(handler, messages("s", { limit: "3", order: "desc" }));
    await call(handler, turn("s", "three"));
    const rest = await call(handler, messages("s", { cursor: cursorOf(up) }));
    expect(contents(rest)).toEqual(["ok", "three", "ok"]);
    const older = await call(handler, messages("s", { order: "desc", cursor: cursorOf(down) }));
    expect(contents(older)).toEqual(["one"]);
  });

  test("goes on behind a turn that was superseded meanwhile", async () => {
    const handler = await talk(["one", "two", "three"]);
    const page = await call(handler, messages("s", { limit: "2" }));
    await call(handler, turn("s", "better", { supersedes: "two" }));
    const rest = await call(handler, messages("s", { cursor: cursorOf(page) }));
    expect(contents(rest)).toEqual(["three", "ok", "better", "ok"]);
  });

  test("keeps a page under what Lambda can answer, counted as it travels (H10)", async () => {
    // Each quote takes four bytes on its way: escaped in the body, and the body escaped in the answer.
    const large = Array.from({ length: 6 }, (_, index) => `${index}${'"'.repeat(300_000)}`);
    const handler = await imported(large);
    for (const order of ["asc", "desc"]) {
      const replies = await pages(handler, { order });
      const found = replies.flatMap(contents);
      expect(order === "asc" ? found : found.reverse()).toEqual(large);
      expect(replies.length).toBeGreaterThan(1);
      const sizes = replies.map(({ text }) => Buffer.byteLength(JSON.stringify(text)));
      expect(Math.max(...sizes)).toBeLessThan(MAX_ANSWER_BYTES);
      // Pages are filled, not cut at every message.
      expect(replies.length).toBeLessThan(large.length);
    }
  });

  test("gives a message that just fits a page on a page of its own", async () => {
    const large = "b".repeat(4_999_900);
    const handler = await imported(["a".repeat(100), large, "c".repeat(100)]);
    const replies = await pages(handler, {});
    expect(replies.map((reply) => contents(reply).map((content) => content.length))).toEqual([
      [100],
      [4_999_900],
      [100],
    ]);
    expect(replies[1]?.text).not.toContain("truncated");
  });

  test.each([
    ["limit", "0"],
    ["limit", "1001"],
    ["limit", "-1"],
    ["limit", "1.5"],
    ["limit", "1e2"],
    ["limit", ""],
    ["limit", " 5"],
    ["limit", "٣"],
    ["limit", "ten"],
    ["limit", "%zz"],
    ["limit", "99999999999999999999"],
    ["order", ""],
    ["order", "ASC"],
    ["order", "newest"],
    ["order", "%"],
    ["cursor", ""],
    ["cursor", "%E0%A4%A"],
    ["cursor", "nonsense"],
    ["cursor", forged(null)],
    ["cursor", forged({})],
    ["cursor", forged([])],
    ["cursor", forged(["00000000", "asc", 1, 0])],
  ])("refuses %s=%s (H02)", async (name, value) => {
    const handler = await talk(["one"]);
    const reply = await call(handler, messages("s", { [name]: value }));
    expect(reply).toMatchObject({ status: 400, json: { code: "invalid_request" } });
    expect(reply.json["errors"]).toEqual([
      { path: name, message: expect.stringMatching(/^must be/) },
    ]);
  });

  test("refuses a cursor that was cut, at any place", async () => {
    const handler = await talk(["one"]);
    const cursor = cursorOf(await call(handler, messages("s", { limit: "1" })));
    for (let length = 0; length < cursor.length; length++) {
      const reply = await call(handler, messages("s", { cursor: cursor.slice(0, length) }));
      expect(reply.status).toBe(400);
    }
  });

  test.each([
    ["text for a number", "1", 0],
    ["null for a number", 1, null],
    ["a number too few", 1, undefined],
  ])("refuses a cursor with %s", async (_, turnNumber, index) => {
    const handler = await talk(["one"]);
    const cursor = cursorOf(await call(handler, messages("s", { limit: "1" })));
    const [life, order] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const parts =
      index === undefined ? [life, order, turnNumber] : [life, order, turnNumber, index];
    const reply = await call(handler, messages("s", { cursor: forged(parts) }));
    expect(reply.status).toBe(400);
  });

  test.each([
    [1e300, 0],
    [-5, -7],
    [1.5, 0.5],
  ])("refuses a cursor with a place that is none: %d, %d", async (turnNumber, index) => {
    const handler = await talk(["one"]);
    const cursor = cursorOf(await call(handler, messages("s", { limit: "1" })));
    const [life, order] = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const place = forged([life, order, turnNumber, index]);
    expect((await call(handler, messages("s", { cursor: place }))).status).toBe(400);
  });

  test.each([
    [0, 0],
    [1, 7],
    [2, 0],
    [Number.MAX_SAFE_INTEGER, 0],
  ])(
    "gives no more than the session's own messages for a place forged as %d, %d",
    async (turnNumber, index) => {
      const handler = await talk(["one"]);
      for (const order of ["asc", "desc"]) {
        const cursor = cursorOf(await call(handler, messages("s", { limit: "1", order })));
        const [life] = JSON.parse(Buffer.from(cursor, "base64url").toString());
        const place = forged([life, order, turnNumber, index]);
        const reply = await call(handler, messages("s", { cursor: place, order }));
        expect(reply.status).toBe(200);
        expect(["one", "ok"]).toEqual(expect.arrayContaining(contents(reply)));
      }
    },
  );

  test("refuses a cursor of the other order, of another session, and of the id's former life", async () => {
    const handler = await talk(["one"]);
    await call(handler, turn("other", "one"));
    const cursor = cursorOf(await call(handler, messages("s", { limit: "1" })));
    expect((await call(handler, messages("s", { cursor, order: "desc" }))).status).toBe(400);
    expect((await call(handler, messages("other", { cursor }))).status).toBe(400);
    await call(handler, { method: "DELETE", path: "/v1/sessions/s" });
    await call(handler, turn("s", "one"));
    expect((await call(handler, messages("s", { cursor }))).status).toBe(400);
  });
});

/** A session "s" of one user's message for each text. */
const imported = async (texts: readonly string[]): Promise<HttpHandler> => {
  const { handler } = service();
  const body = {
    session_id: "s",
    created_at: "2100-12-01T12:00:00Z",
    metadata: {},
    messages: texts.map((content) => ({ role: "user", content })),
  };
  const { status } = await call(handler, { method: "PUT", path: "/v1/sessions/s/snapshot", body });
  expect(status).toBe(201);
  return handler;
};

function forged(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
