import { describe, expect, test } from "vitest";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { call, service } from "../support/http.ts";
import { HEAD, keyed, MESSAGES, turn } from "./requests.ts";

describe("POST /v1/sessions/{id}/turns", () => {
  test("creates the session, runs the turn, and tells what it added", async () => {
    const { handler } = service();
    const { status, json } = await call(handler, turn("hi"));
    expect(status).toBe(200);
    expect(json).toEqual({
      turn_id: expect.stringMatching(/^~[0-9a-f]{32}$/),
      session_id: "s",
      version: 2,
      final: "ok",
      finish: "final",
      steps: [{ index: 0, kind: "final", detail: "ok" }],
      messages: [
        { role: "user", content: "hi", tool_calls: [], tool_call_id: null },
        { role: "assistant", content: "ok", tool_calls: [], tool_call_id: null },
      ],
      usage: { input_tokens: 0, output_tokens: 0 },
      replayed: false,
    });
  });

  test("tells the tokens used, summed over the model's calls", async () => {
    const call1 = assistantMessage("", [{ id: "c", name: "t", arguments: {} }]);
    const { handler } = service({
      tools: [tool({ name: "t", description: "", parameters: {}, run: () => "" })],
      replies: [
        { message: call1, usage: { inputTokens: 1, outputTokens: 20 } },
        { message: assistantMessage("done"), usage: { inputTokens: 300, outputTokens: 4000 } },
      ],
    });
    const { json } = await call(handler, turn("hi"));
    expect(json).toMatchObject({ usage: { input_tokens: 301, output_tokens: 4020 } });
    // An empty result stays an empty text (C07).
    expect(json["messages"]).toContainEqual({
      role: "tool",
      content: "",
      tool_calls: [],
      tool_call_id: "c",
    });
  });

  test("ends with max_steps and an empty answer where the steps are used up", async () => {
    const { handler } = service({
      maxSteps: 1,
      replies: [assistantMessage("thinking", [{ id: "c", name: "nope", arguments: {} }])],
    });
    const { status, json } = await call(handler, turn("hi"));
    expect(status).toBe(200);
    expect(json).toMatchObject({ final: "", finish: "max_steps" });
    expect(json["steps"]).toEqual([
      { index: 0, kind: "tool_call", detail: expect.stringContaining("nope") },
      { index: 1, kind: "error", detail: expect.any(String) },
    ]);
  });

  test("takes the place of an earlier turn", async () => {
    const { handler } = service();
    await call(handler, keyed("one", "first"));
    expect((await call(handler, turn("second", {}, { supersedes: "one" }))).json).toMatchObject({
      version: 3,
    });
    const { json } = await call(handler, MESSAGES);
    expect(json["data"]).toMatchObject([{ content: "second" }, { content: "ok" }]);
    expect((await call(handler, HEAD)).json).toMatchObject({ message_count: 2, turn_count: 2 });
  });

  test.each(["one", "never"])(
    "refuses to replace %s, which isn't there to replace",
    async (supersedes) => {
      const { handler, model } = service();
      await call(handler, keyed("one"));
      await call(handler, turn("better", {}, { supersedes: "one" }));
      const refused = await call(handler, turn("again", {}, { supersedes }));
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "supersedes" }] } });
      expect(model.calls).toHaveLength(2);
      expect((await call(handler, HEAD)).json).toMatchObject({ version: 3, turn: null });
    },
  );
});

describe("Idempotency-Key", () => {
  test("gives the same result again, and the model isn't asked again", async () => {
    const { handler, model } = service({ replies: [assistantMessage("only once")] });
    const first = await call(handler, keyed("k"));
    const again = await call(handler, keyed("k"));
    expect(first.json).toMatchObject({ turn_id: "k", final: "only once", replayed: false });
    expect(again).toMatchObject({ status: 200, json: { ...first.json, replayed: true } });
    expect(model.calls).toHaveLength(1);
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 2, message_count: 2 });
  });

  test("gives the same result when other turns came meanwhile", async () => {
    const { handler } = service();
    const first = await call(handler, keyed("k"));
    await call(handler, turn("another"));
    expect((await call(handler, keyed("k"))).json).toEqual({ ...first.json, replayed: true });
  });

  test("is the same quoted and bare", async () => {
    const { handler } = service();
    await call(handler, turn("hi", { "idempotency-key": "abc" }));
    const again = await call(handler, turn("hi", { "IDEMPOTENCY-KEY": ' "abc" ' }));
    expect(again.json).toMatchObject({ turn_id: "abc", replayed: true });
  });

  test("belongs to its session", async () => {
    const { handler } = service();
    await call(handler, keyed("k"));
    const other = await call(handler, {
      ...keyed("k", "other input"),
      path: "/v1/sessions/t/turns",
    });
    expect(other).toMatchObject({ status: 200, json: { replayed: false } });
  });

  test.each([
    ["input", keyed("k", "bye")],
    ["superseded turn", turn("hi", { "Idempotency-Key": "k" }, { supersedes: "k" })],
  ])("is refused with another %s", async (_, request) => {
    const { handler, model } = service();
    await call(handler, keyed("k"));
    const refused = await call(handler, request);
    expect(refused).toMatchObject({ status: 422, json: { code: "idempotency_key_reused" } });
    expect(model.calls).toHaveLength(1);
  });

  test.each(["!", "a".repeat(128), 'a"b', "{7}~"])("may be %s", async (key) => {
    const { handler } = service();
    expect(await call(handler, keyed(key))).toMatchObject({ status: 200, json: { turn_id: key } });
  });

  test.each([
    "",
    '""',
    " ",
    "a b",
    "a".repeat(129),
    `"${"a".repeat(129)}"`,
    "é",
    "键",
    "a\tb",
    "~abc",
    '"~abc"',
  ])("can't be %j", async (key) => {
    const { handler, model } = service();
    const refused = await call(handler, keyed(key));
    expect(refused).toMatchObject({ status: 400, json: { code: "invalid_request" } });
    expect(refused.json["errors"]).toEqual([
      { path: "Idempotency-Key", message: expect.stringMatching(/^must/) },
    ]);
    expect(model.calls).toHaveLength(0);
  });

  test("doesn't bring back the id that the service made itself", async () => {
    const { handler } = service();
    const { json } = await call(handler, turn("hi"));
    expect((await call(handler, keyed(String(json["turn_id"])))).status).toBe(400);
  });
});

describe("If-Match on a turn", () => {
  test.each(['"2"', '"2.1"', "2", "2.1", " 2 "])("runs it at version 2: %s", async (tag) => {
    const { handler } = service();
    await call(handler, turn("hi"));
    const reply = await call(handler, turn("next", { "If-Match": tag }));
    expect(reply).toMatchObject({ status: 200, json: { version: 3 } });
  });

  test.each(['"1"', '"3"', '"2.2"', "0", '"999999999999999.1"'])(
    "refuses it at version 2: %s",
    async (tag) => {
      const { handler, model } = service();
      await call(handler, turn("hi"));
      const refused = await call(handler, turn("next", { "If-Match": tag }));
      expect(refused).toMatchObject({ status: 412, json: { code: "version_mismatch" } });
      expect(model.calls).toHaveLength(1);
      expect((await call(handler, HEAD)).json).toMatchObject({ version: 2, turn: null });
    },
  );

  test("refuses it where there is no session, and makes none", async () => {
    const { handler } = service();
    const refused = await call(handler, turn("hi", { "If-Match": '"1"' }));
    expect(refused).toMatchObject({ status: 412, json: { code: "version_mismatch" } });
    expect((await call(handler, HEAD)).status).toBe(404);
  });

  test.each([
    "",
    '""',
    "*",
    'W/"2"',
    '"1", "2"',
    "two",
    "-2",
    "2.",
    ".1",
    "2.1.0",
    '"2',
    "2e0",
    "0x2",
    "9".repeat(16),
  ])("can't be %j", async (tag) => {
    const { handler } = service();
    await call(handler, turn("hi"));
    for (const request of [
      turn("next", { "If-Match": tag }),
      { ...HEAD, method: "DELETE", headers: { "If-Match": tag } },
    ]) {
      const refused = await call(handler, request);
      expect(refused).toMatchObject({ status: 400, json: { code: "invalid_request" } });
      expect(refused.json["errors"]).toEqual([
        { path: "If-Match", message: expect.stringContaining('"3.1"') },
      ]);
    }
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 2 });
  });
});
