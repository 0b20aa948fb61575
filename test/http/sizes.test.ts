/** Lambda sends answers of at most 6 MB: `call` checks each one, headers, escapes and all. */
import { describe, expect, test } from "vitest";
import { tool } from "../../lib/agent/tool.ts";
import type { HttpHandler } from "../../lib/http/handler.ts";
import { assistantMessage, type ToolCall } from "../../lib/session/message.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Service, service } from "../support/http.ts";
import { HEAD, keyed, MESSAGES, TURNS } from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { allOf, dataOf, fieldsOf, pagesOf } from "./talk.ts";

const SNAPSHOT = { method: "GET", path: "/v1/sessions/s/snapshot" };

/** A service whose first model reply makes these calls; the tool answers each with the text, and the model says "done". */
const looking = (
  result: string,
  calls: readonly ToolCall[] = [look()],
  store?: SessionStore,
): Service =>
  service({
    ...(store ? { store } : {}),
    tools: [tool({ name: "look", description: "", parameters: {}, run: () => result })],
    replies: [assistantMessage("", calls), assistantMessage("done"), assistantMessage("ok")],
  });

function look(id = "c", args: ToolCall["arguments"] = {}): ToolCall {
  return { id, name: "look", arguments: args };
}

/** A session "s" of these messages. */
const imported = async (messages: readonly object[]): Promise<HttpHandler> => {
  const { handler } = service();
  const body = { session_id: "s", created_at: "2100-12-01T12:00:00Z", metadata: {}, messages };
  const { status } = await call(handler, { ...SNAPSHOT, method: "PUT", body });
  expect(status).toBe(201);
  return handler;
};

const said = (content: string) => ({ role: "user", content });

const contentsOf = (messages: readonly unknown[]): string[] =>
  messages.map((message) => String(fieldsOf(message)["content"]));

describe("a history that doubles when it is escaped (H10)", () => {
  /** 2.4 MB of quotes and newlines: twice that as JSON, and nearly twice again on its way. */
  const contents = Array.from({ length: 24 }, (_, n) => `${n}${'"\n'.repeat(50_000)}`);

  test.each(["asc", "desc"])(
    "has pages that fit and add up to the whole, in order %s",
    async (order) => {
      const handler = await imported(contents.map(said));
      for (const [limit, count] of [
        ["5", 5],
        ["24", 2],
        ["1000", 2],
      ] as const) {
        const messages = await pagesOf(handler, MESSAGES, { order, limit });
        const found = contentsOf(messages.flat());
        expect(order === "asc" ? found : found.toReversed()).toEqual(contents);
        const turns = await pagesOf(handler, TURNS, { order, limit });
        const inTurns = turns.flat().flatMap((it) => contentsOf(dataOf(fieldsOf(it)["messages"])));
        expect(order === "asc" ? inTurns : inTurns.toReversed()).toEqual(contents);
        // Filled, not cut at every item.
        expect([messages.length, turns.length]).toEqual([count, count]);
      }
    },
  );

  test("isn't exported in one answer, and the refusal says where its pages are", async () => {
    const handler = await imported(contents.map(said));
    const refused = await call(handler, SNAPSHOT);
    expect(refused).toMatchObject({ status: 413, json: { code: "too_large" } });
    expect(refused.json["detail"]).toMatch(/page by page.*\/messages.*\/turns/);
    expect((await call(handler, HEAD)).json).toMatchObject({ turn_count: 24 });
  });

  test("is exported as long as it fits, counted as it travels", async () => {
    // Four bytes a quote.
    const fits = await imported([said('"'.repeat(1_370_000))]);
    const exported = await call(fits, SNAPSHOT);
    expect(exported.status).toBe(200);
    expect(contentsOf(dataOf(exported.json["messages"]))).toEqual(['"'.repeat(1_370_000)]);
    const exceeds = await imported([said('"'.repeat(1_380_000))]);
    expect((await call(exceeds, SNAPSHOT)).status).toBe(413);
  });
});

test("a session known to be too large for an answer is refused without reading its history", async () => {
  const store = memorySessionStore();
  const turns = async (): Promise<never> => {
    throw new Error("the history was read");
  };
  await call(looking("x".repeat(5_600_000), [look()], store).handler, keyed("k"));
  const { handler } = service({ store: { ...store, turns } });
  expect((await call(handler, SNAPSHOT)).status).toBe(413);
});

describe.each(storeKinds())("a turn with a tool result of 5 MB on $name", ({ open }) => {
  test("is answered, replayed, listed and paged with what fits, and says what was cut (H10)", async () => {
    const result = `${"x".repeat(2_500_000)}${'"'.repeat(2_500_000)}`;
    const process = await open();
    const { handler } = looking(result, [look()], process());
    const answer = await call(handler, keyed("k"));
    expect(answer).toMatchObject({
      status: 200,
      json: {
        turn_id: "k",
        version: 2,
        final: "done",
        finish: "final",
        steps: [{ kind: "tool_call" }, { kind: "final", detail: "done" }],
        messages: [],
        truncated: true,
        replayed: false,
      },
    });
    const [step] = dataOf(answer.json["steps"]);
    expect(fieldsOf(step)["detail"]).toMatch(/^look -> x{50000,}…$/);

    const cold = service({ store: process() }).handler;
    expect((await call(cold, keyed("k"))).json).toEqual({ ...answer.json, replayed: true });
    expect((await call(cold, HEAD)).json).toMatchObject({ message_count: 4, turn: null });

    const turns = await allOf(cold, TURNS);
    expect(turns).toMatchObject([{ turn_id: "k", version: 2, messages: [], truncated: true }]);

    const messages = await allOf(cold, MESSAGES);
    expect(contentsOf(messages).with(2, "")).toEqual(["hi", "", "", "done"]);
    const long = fieldsOf(messages[2]);
    const content = String(long["content"]);
    expect(long).toMatchObject({ role: "tool", tool_call_id: "c", truncated: true });
    expect(result.startsWith(content)).toBe(true);
    expect(content.length).toBeGreaterThan(1_900_000);
    for (const index of [0, 1, 3]) expect(messages[index]).not.toHaveProperty("truncated");
    expect((await call(cold, SNAPSHOT)).status).toBe(413);

    // All of it is there, and the next turn's model is shown it.
    const next = service({ store: process() });
    expect((await call(next.handler, keyed("next"))).status).toBe(200);
    expect(next.model.calls[0]?.messages[2]?.content).toBe(result);
  });
});

describe("what is too large for an answer", () => {
  test("is cut from a turn of many large results, by shares (H10)", async () => {
    const calls = Array.from({ length: 80 }, (_, n) => look(`c${n}`));
    const { handler } = looking('"'.repeat(100_000), calls);
    const { json } = await call(handler, keyed("k"));
    expect(json).toMatchObject({ final: "done", messages: [], truncated: true });
    const details = dataOf(json["steps"]).map((step) => String(fieldsOf(step)["detail"]));
    expect(details).toHaveLength(81);
    expect(details.slice(0, 80).every((detail) => /^look -> "{5000,}…$/.test(detail))).toBe(true);
    const messages = await allOf(handler, MESSAGES);
    expect(messages).toHaveLength(83);
    expect(JSON.stringify(messages)).not.toContain("truncated");
  });

  test("is an answer of a turn's own too", async () => {
    const { handler } = service({ replies: [assistantMessage("\n".repeat(2_000_000))] });
    const { json } = await call(handler, keyed("k"));
    expect(json).toMatchObject({ final: expect.stringMatching(/^\n+…$/), truncated: true });
  });

  test("isn't a turn that just fits: it is told whole", async () => {
    const { handler } = looking("x".repeat(2_700_000));
    const { json } = await call(handler, keyed("k"));
    expect(json).not.toHaveProperty("truncated");
    expect(contentsOf(dataOf(json["messages"]))[2]).toHaveLength(2_700_000);
  });

  test.each([
    ["begins with what takes most bytes", `${"\u0000".repeat(1_200_000)}${"x".repeat(4_500_000)}`],
    ["ends with what takes most bytes", `${"x".repeat(4_500_000)}${"\u0000".repeat(1_200_000)}`],
    ["is made of characters of four bytes", "😀".repeat(1_400_000)],
    ["has them at odd places", `x${"😀".repeat(1_400_000)}`],
  ])("is cut from a message that %s, between characters (H10)", async (_, text) => {
    const { handler } = looking(text);
    await call(handler, keyed("k"));
    const found = fieldsOf((await allOf(handler, MESSAGES))[2]);
    const content = String(found["content"]);
    expect(found).toMatchObject({ tool_call_id: "c", truncated: true });
    expect(text.startsWith(content)).toBe(true);
    expect(content.isWellFormed()).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(JSON.stringify(found)))).toBeGreaterThan(2_000_000);
  });

  test("are a message's calls: its text stays whole (H10)", async () => {
    const { handler } = service({
      replies: [
        assistantMessage("Let me see.", [look("c", { text: "x".repeat(5_100_000) })]),
        assistantMessage("done"),
      ],
    });
    await call(handler, keyed("k"));
    expect((await allOf(handler, MESSAGES))[1]).toEqual({
      role: "assistant",
      content: "Let me see.",
      tool_calls: [],
      tool_call_id: null,
      truncated: true,
    });
  });

  test("may be a call's id, which an import brings (H10)", async () => {
    const tool_call_id = '"'.repeat(2_400_000);
    const handler = await imported([said("hi"), { role: "tool", content: "kept", tool_call_id }]);
    const [, message] = await allOf(handler, MESSAGES);
    expect(message).toMatchObject({ content: "kept", truncated: true });
    expect(await allOf(handler, TURNS)).toMatchObject([{ messages: [], truncated: true }]);
  });
});
