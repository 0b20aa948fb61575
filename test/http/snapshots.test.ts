import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { call, type Reply, type Sent, service } from "../support/http.ts";

const session = (id: string, part = ""): Sent => ({
  method: "GET",
  path: `/v1/sessions/${id}${part}`,
});
const turn = (id: string, input: string): Sent => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  body: { input },
});
const put = (id: string, body: unknown): Sent => ({
  method: "PUT",
  path: `/v1/sessions/${id}/snapshot`,
  body,
});

const SNAPSHOT = {
  session_id: "s",
  created_at: "2100-12-01T11:30:00.000000+00:00",
  metadata: {},
  messages: [
    { role: "user", content: "hi", tool_calls: [], tool_call_id: null },
    { role: "assistant", content: "", tool_calls: [], tool_call_id: null },
  ],
};

describe("the reference run", () => {
  const arithmetic = (name: string, compute: (a: number, b: number) => number) =>
    tool({
      name,
      description: name,
      parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } } },
      effect: "none",
      run: ({ a, b }: { a: number; b: number }) => compute(a, b),
    });

  const reference = () =>
    service({
      system: "You work out arithmetic.",
      tools: [arithmetic("add", (a, b) => a + b), arithmetic("multiply", (a, b) => a * b)],
      replies: [
        assistantMessage("", [{ id: "c1", name: "add", arguments: { a: 2, b: 3 } }]),
        assistantMessage("", [{ id: "c2", name: "multiply", arguments: { a: 5, b: 4 } }]),
        assistantMessage("The result is 20."),
        assistantMessage("It was 20."),
        assistantMessage("Hello."),
      ],
    });

  const messageCount = async (
    { handler }: ReturnType<typeof service>,
    id: string,
  ): Promise<unknown[]> => [
    (await call(handler, session(id))).json["message_count"],
    ((await call(handler, session(id, "/messages"))).json["data"] as unknown[]).length,
  ];

  test("counts 7 messages in A, then 9, and 3 in B, the same by every way of asking", async () => {
    const served = reference();
    const first = await call(served.handler, turn("A", "Add 2 and 3, then multiply by 4."));
    expect(first.json).toMatchObject({
      session_id: "A",
      version: 2,
      final: "The result is 20.",
      finish: "final",
      steps: [
        { index: 0, kind: "tool_call", detail: "add -> 5" },
        { index: 1, kind: "tool_call", detail: "multiply -> 20" },
        { index: 2, kind: "final", detail: "The result is 20." },
      ],
      usage: { input_tokens: 0, output_tokens: 0 },
      replayed: false,
    });
    expect(await messageCount(served, "A")).toEqual([7, 7]);
    const second = await call(served.handler, turn("A", "What was it?"));
    expect(second.json).toMatchObject({ version: 3, final: "It was 20." });
    expect(await messageCount(served, "A")).toEqual([9, 9]);
    await call(served.handler, turn("B", "Hi."));
    expect(await messageCount(served, "B")).toEqual([3, 3]);
    expect(await messageCount(served, "A")).toEqual([9, 9]);
    const { json } = await call(served.handler, session("A", "/messages"));
    expect(json["data"]).toEqual([
      ...(first.json["messages"] as unknown[]),
      ...(second.json["messages"] as unknown[]),
    ]);
  });

  test("goes on in another session from a snapshot that went through JSON", async () => {
    const served = reference();
    await call(served.handler, turn("A", "Add 2 and 3, then multiply by 4."));
    const exported = await call(served.handler, session("A", "/snapshot"));
    expect(exported.headers).toMatchObject({ etag: '"2.1"' });
    expect(Object.keys(exported.json)).toEqual([
      "session_id",
      "created_at",
      "metadata",
      "messages",
    ]);
    const moved = { ...exported.json, session_id: "C" };
    expect((await call(served.handler, put("C", JSON.stringify(moved)))).status).toBe(201);
    const again = await call(served.handler, session("C", "/snapshot"));
    expect(again.text).toBe(JSON.stringify(moved));
    expect(await messageCount(served, "C")).toEqual([7, 7]);
    await call(served.handler, turn("C", "What was it?"));
    expect(served.model.calls.at(-1)?.messages).toHaveLength(8);
    expect(await messageCount(served, "C")).toEqual([9, 9]);
    expect(await messageCount(served, "A")).toEqual([7, 7]);
  });
});

/** As Python's `json.dumps` wrote it. */
const fixture = (file: string): string =>
  readFileSync(new URL(`../fixtures/${file}`, import.meta.url), "utf8");

describe("PUT and GET /v1/sessions/{id}/snapshot", () => {
  test.each(
    ["minagent-snapshot.json", "minagent-snapshot-utf8.json"].flatMap((file) =>
      [false, true].map((base64) => ({ file, base64 })),
    ),
  )(
    "take and give what Python wrote, value for value and created_at letter for letter: $file, base64 $base64",
    async ({ file, base64 }) => {
      const { handler } = service({ lifetimeSeconds: 86_400 });
      const text = fixture(file);
      const snapshot = JSON.parse(text) as { session_id: string; messages: unknown[] };
      const id = snapshot.session_id;
      const body = base64 ? Buffer.from(text).toString("base64") : text;
      const stored = await call(handler, { ...put(id, body), base64 });
      expect(stored.status).toBe(201);
      expect(stored.headers["location"]).toBe(`/dev/v1/sessions/${id}`);
      expect(stored.json).toMatchObject({
        session_id: id,
        created_at: "2100-12-01T03:04:05.678901+00:00",
        expires_at: "2100-12-02T03:04:05.000000+00:00",
        message_count: snapshot.messages.length,
      });
      const exported = await call(handler, session(id, "/snapshot"));
      expect(exported.json).toEqual(snapshot);
      expect(exported.text).toContain('"created_at":"2100-12-01T03:04:05.678901+00:00"');
      expect(exported.headers["etag"]).toBe(stored.headers["etag"]);
    },
  );

  test.each(["2100-12-01T12:00:00Z", "2100-12-01 13:00:00.1+01:00", "2100-12-01T06:30-0530"])(
    "keep created_at as it is written: %s",
    async (created_at) => {
      const { handler } = service();
      const snapshot = { ...SNAPSHOT, created_at };
      expect((await call(handler, put("s", snapshot))).status).toBe(201);
      expect((await call(handler, session("s", "/snapshot"))).json).toEqual(snapshot);
      expect((await call(handler, session("s"))).json["expires_at"]).toBe(
        "2100-12-01T13:00:00.000000+00:00",
      );
    },
  );

  test("keep the order of keys, empty texts and __proto__ (C07, C18)", async () => {
    const { handler } = service();
    const text = `{"session_id":"s","created_at":"2100-12-01T12:00:00Z","metadata":{"b":"","a":[],"__proto__":{"x":1}},"messages":[{"role":"user","content":"","tool_calls":[],"tool_call_id":null},{"role":"assistant","content":"","tool_calls":[{"id":"","name":"","arguments":{"z":1,"y":{"__proto__":{"admin":true}},"constructor":null}}],"tool_call_id":null},{"role":"tool","content":"","tool_calls":[],"tool_call_id":""}]}`;
    expect((await call(handler, put("s", text))).status).toBe(201);
    expect((await call(handler, session("s", "/snapshot"))).text).toBe(text);
    expect(Reflect.get({}, "admin")).toBeUndefined();
  });

  test("take a snapshot without messages", async () => {
    const { handler } = service();
    const stored = await call(handler, put("s", { ...SNAPSHOT, messages: [] }));
    expect(stored).toMatchObject({
      status: 201,
      json: { version: 1, message_count: 0, turn_count: 0 },
    });
  });

  test("leave out what a model's provider keeps, unless it is asked for", async () => {
    const data = { provider: "x:1", data: { signature: "s" } };
    const { handler, model } = service({
      provider: "x:1",
      replies: [assistantMessage("hello", [], data), assistantMessage("ok")],
    });
    const answer = await call(handler, turn("s", "hi"));
    const plain = await call(handler, session("s", "/snapshot"));
    const listed = await call(handler, session("s", "/messages"));
    for (const { text } of [answer, plain, listed]) expect(text).not.toContain("signature");
    const query = { provider_data: "true" };
    const whole = await call(handler, { ...session("s", "/snapshot"), query });
    expect(whole.json["messages"]).toEqual([
      expect.not.objectContaining({ provider_data: expect.anything() }),
      expect.objectContaining({ content: "hello", provider_data: data }),
    ]);

    await call(handler, put("t", { ...whole.json, session_id: "t" }));
    await call(handler, turn("t", "and?"));
    expect(model.calls[1]?.messages[1]).toMatchObject({ content: "hello", providerData: data });
    const asked = await call(handler, {
      ...session("s", "/snapshot"),
      query: { provider_data: "1" },
    });
    expect(asked).toMatchObject({ status: 400 });
    expect(asked.text).toContain("provider_data");
  });

  test("never write over a session", async () => {
    const { handler } = service();
    await call(handler, turn("s", "mine"));
    const before = await call(handler, session("s", "/snapshot"));
    const refused = await call(handler, put("s", SNAPSHOT));
    expect(refused).toMatchObject({ status: 409, json: { code: "session_exists" } });
    expect((await call(handler, session("s", "/snapshot"))).text).toBe(before.text);
  });

  const { session_id: _id, ...withoutId } = SNAPSHOT;
  const { created_at: _at, ...withoutTime } = SNAPSHOT;
  const { metadata: _metadata, ...withoutMetadata } = SNAPSHOT;
  const { messages: _messages, ...withoutMessages } = SNAPSHOT;
  const message = (fields: object) => ({
    ...SNAPSHOT,
    messages: [SNAPSHOT.messages[0], { role: "user", content: "", ...fields }],
  });
  const toolCall = (fields: object) =>
    message({ role: "assistant", tool_calls: [{ id: "c", name: "n", arguments: {}, ...fields }] });

  test.each<[path: string, snapshot: unknown]>([
    ["messages", ""],
    ["messages", {}],
    ["session_id", withoutId],
    ["session_id", { ...SNAPSHOT, session_id: 5 }],
    ["session_id", { ...SNAPSHOT, session_id: "a b" }],
    ["session_id", { ...SNAPSHOT, session_id: "other" }],
    ["created_at", withoutTime],
    ["created_at", { ...SNAPSHOT, created_at: 1_796_126_400 }],
    ["created_at", { ...SNAPSHOT, created_at: "" }],
    ["created_at", { ...SNAPSHOT, created_at: "2100-12-01T12:00:00" }],
    ["created_at", { ...SNAPSHOT, created_at: "2100-02-30T12:00:00Z" }],
    ["created_at", { ...SNAPSHOT, created_at: "2100-12-01T11:00:00Z" }],
    ["metadata", withoutMetadata],
    ["metadata", { ...SNAPSHOT, metadata: null }],
    ["metadata", { ...SNAPSHOT, metadata: [] }],
    ["messages", withoutMessages],
    ["messages", { ...SNAPSHOT, messages: {} }],
    ["messages[1]", { ...SNAPSHOT, messages: [SNAPSHOT.messages[0], "hi"] }],
    ["messages[1].role", message({ role: "developer" })],
    ["messages[1].content", message({ content: null })],
    ["messages[1].content", message({ content: [{ type: "text", text: "hi" }] })],
    ["messages[1].name", message({ name: "ann" })],
    ["messages[1].tool_calls", message({ tool_calls: {} })],
    ["messages[1].tool_calls", message({ tool_calls: [{ id: "c", name: "n", arguments: {} }] })],
    ["messages[1].tool_call_id", message({ tool_call_id: "c" })],
    ["messages[1].tool_call_id", message({ role: "tool" })],
    ["messages[1].tool_call_id", message({ role: "tool", tool_call_id: 5 })],
    ["messages[1].tool_calls[0].id", toolCall({ id: 1 })],
    ["messages[1].tool_calls[0].name", toolCall({ name: null })],
    ["messages[1].tool_calls[0].arguments", toolCall({ arguments: undefined })],
    ["messages[1].tool_calls[0].type", toolCall({ type: "function" })],
    ["version", { ...SNAPSHOT, version: 3 }],
    ["owner", { ...SNAPSHOT, owner: "bob" }],
    ["__proto__", `{"__proto__":{},${JSON.stringify(SNAPSHOT).slice(1)}`],
  ])("refuse a snapshot with a fault at %s", async (path, snapshot) => {
    const { handler } = service();
    const refused = await call(handler, put("s", snapshot));
    expect(refused).toMatchObject({ status: 422, json: { code: "invalid_snapshot" } });
    expect(faultsOf(refused).map((fault) => fault.path)).toEqual([path]);
    expect((await call(handler, session("s"))).status).toBe(404);
  });

  test.each([
    ["9007199254740993", "metadata.n"],
    ["1e999", "metadata.n"],
    ["0.1000000000000000055511151231257827", "metadata.n"],
  ])("refuse the number %s, which can't be held, with its path", async (number, path) => {
    const { handler } = service();
    const text = JSON.stringify({ ...SNAPSHOT, metadata: { n: "number" } }).replace(
      '"number"',
      number,
    );
    const refused = await call(handler, put("s", text));
    expect(refused.status).toBe(400);
    expect(faultsOf(refused)).toEqual([{ path, message: expect.stringContaining(number) }]);
  });
});

const faultsOf = ({ json }: Reply) => json["errors"] as { path: string; message: string }[];
