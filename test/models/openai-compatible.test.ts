import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type OpenAICompatibleOptions,
  openaiCompatibleModel,
} from "../../lib/models/openai-compatible.ts";
import { assistantMessage, type Message, toolMessage } from "../../lib/session/message.ts";
import { ASKED, modelContract, signalOf } from "./contract.ts";
import { historiesContract } from "./histories-contract.ts";
import { event, replyEvents } from "./openai/bodies.ts";
import { type Provider, providerContract, SECRET } from "./provider-contract.ts";
import type { WireAnswer } from "./wire.ts";
import { type OpenAIServer, openaiServer } from "./wire-openai.ts";

const noWait = { sleep: async () => {} };

const provider: Provider = {
  open: openaiServer,
  model: ({ url }, retries) =>
    openaiCompatibleModel({ baseUrl: url, modelId: "tiny", apiKey: SECRET, ...retries }),
  reasons: true,
  argumentsAreText: true,
};
providerContract("an OpenAI-compatible server", provider);
historiesContract("an OpenAI-compatible server", provider);

describe("an OpenAI-compatible server", () => {
  let server: OpenAIServer;
  beforeAll(async () => {
    server = await openaiServer();
  });
  afterAll(() => server.close());

  const modelWith = (options: Partial<OpenAICompatibleOptions> = {}) =>
    openaiCompatibleModel({ baseUrl: server.url, modelId: "tiny", ...noWait, ...options });
  const five: WireAnswer = { kind: "reply", reply: { text: "five" } };

  modelContract("an OpenAI-compatible server", async () => {
    server.answer(five);
    return { model: modelWith(), messages: ASKED };
  });

  const ask = async (
    options: Partial<OpenAICompatibleOptions>,
    answers: readonly WireAnswer[] = [five],
    messages: readonly Message[] = ASKED,
  ) => {
    server.answer(...answers);
    return modelWith(options).complete(messages, [], { signal: signalOf() });
  };

  test("needs nothing but base URL and model", async () => {
    await ask({});
    const { headers, body } = server.sent.at(-1) ?? {};
    expect(headers).not.toHaveProperty("authorization");
    expect(body).toStrictEqual({
      model: "tiny",
      messages: [{ role: "user", content: "What is 2 + 3?" }],
    });
  });

  test("sends key, headers, limits and what else is put into the body", async () => {
    await ask({
      apiKey: SECRET,
      headers: { "x-team": "blue" },
      maxTokens: 100,
      temperature: 0,
      body: { reasoning_effort: "low" },
    });
    const { headers, body } = server.sent.at(-1) ?? {};
    expect(headers).toMatchObject({ authorization: `Bearer ${SECRET}`, "x-team": "blue" });
    expect(body).toMatchObject({ max_tokens: 100, temperature: 0, reasoning_effort: "low" });
  });

  test.each([
    ["whole", SECRET],
    ["in part", `${SECRET.slice(0, 8)}*******`],
    ["in quotes", `"${SECRET}",`],
  ])("hides a key that the server quotes %s, and those in headers", async (_how, quoted) => {
    const refusal = { kind: "refusal", status: 403, message: `Not with ${quoted} here` } as const;
    for (const options of [{ apiKey: SECRET }, { headers: { "x-api-key": SECRET } }]) {
      const asked = ask(options, [refusal]);
      await expect(asked).rejects.toThrow(/answered 403: Not with \[hidden\] here$/);
    }
  });

  test("doesn't repeat what a server says of a key that it refuses", async () => {
    const refusal = { kind: "refusal", status: 401, message: "Not with ************6789" } as const;
    const asked = ask({ apiKey: SECRET }, [refusal]);
    await expect(asked).rejects.toThrow(/answered 401: the credentials were refused$/);
  });

  test("calls whose arguments came whole are no answer before the server said that it stopped", async () => {
    const calls = [{ id: "c", name: "add", arguments: '{"a":2,"b":3}' }];
    server.answer({ kind: "cut", reply: { calls }, at: "end mark" }, five);
    const options = { signal: signalOf(), onText: () => {} };
    const { message } = await modelWith().complete(ASKED, [], options);
    expect(message).toMatchObject({ content: "five", toolCalls: [] });
  });

  /** What is asked of a server that answers with these very events, and of one that has an answer. */
  const askFor = async (events: string) => {
    const odd = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(events);
    });
    odd.listen(0, "127.0.0.1");
    await once(odd, "listening");
    const { port } = odd.address() as AddressInfo;
    const model = modelWith({ baseUrl: `http://127.0.0.1:${port}/v1`, maxTries: 1 });
    const asked = model.complete(ASKED, [], { signal: signalOf(), onText: () => {} });
    return asked.finally(() => odd.close().closeAllConnections());
  };
  const said = replyEvents({ text: "five" }, true);

  test("a stream that says why it stopped is an answer, though nothing comes behind it", async () => {
    const { message, finishReason } = await askFor([...said.told, said.last].join(""));
    expect([message.content, finishReason]).toEqual(["five", "stop"]);
  });

  test.each([
    ["an overload", '{"error":{"message":"busy","code":503}}', { isTransient: true, status: 503 }],
    ["a context that is full", '{"error":{"message":"full","code":400}}', { isTransient: false }],
    [
      "an error in its end mark",
      '{"error":{"message":"oh","code":502},"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}',
      { isTransient: true },
    ],
    ["an error of another form", '{"error":"oh"}', { isTransient: true }],
    ["what is no JSON", "oh", { isTransient: true }],
  ])("a stream that brings %s is no answer, whatever follows", async (_what, data, error) => {
    const events = [...said.told, event(data), said.last, ...said.behind].join("");
    await expect(askFor(events)).rejects.toMatchObject(error);
  });

  test("a server that isn't there is tried again, and then an error", async () => {
    const gone = await openaiServer();
    await gone.close();
    const waits: number[] = [];
    const sleep = async (ms: number) => void waits.push(ms);
    const asked = ask({ baseUrl: gone.url, maxTries: 3, sleep });
    await expect(asked).rejects.toMatchObject({ isTransient: true, status: undefined });
    expect(waits).toHaveLength(2);
  });

  test("names that no server takes back go out in letters that it takes", async () => {
    const calls = [
      { id: "a", name: "functions.add numbers", arguments: {} },
      { id: "b", name: "", arguments: {} },
      { id: "c", name: "x".repeat(99), arguments: {} },
    ];
    const messages = [
      ...ASKED,
      assistantMessage("", calls),
      toolMessage("a", "error: there is no such tool"),
      toolMessage("b", "error: there is no such tool"),
      toolMessage("c", "error: there is no such tool"),
    ];
    await ask({}, [five], messages);
    const [, assistant] = server.requests.at(-1)?.messages ?? [];
    expect(assistant).toMatchObject({
      calls: [{ name: "functions_add_numbers" }, { name: "unnamed" }, { name: "x".repeat(64) }],
    });
  });

  test("__proto__ as a key of arguments goes out as data (C18)", async () => {
    const given = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}');
    const calls = [{ id: "a", name: "add", arguments: given }];
    await ask({}, [five], [...ASKED, assistantMessage("", calls), toolMessage("a", "1")]);
    const [, assistant] = server.requests.at(-1)?.messages ?? [];
    // As text: a matcher may take the key for a prototype.
    const sent = { role: "assistant", text: "", calls };
    expect(JSON.stringify(assistant)).toBe(JSON.stringify(sent));
  });

  test.each([
    ["127.0.0.1:11434/v1", /must be an http or https URL/],
    ["file:///v1", /must be an http or https URL/],
    ["https://ann:pass-1@localhost/v1", /can't hold credentials/],
    ["https://localhost/v1?key=pass-1", /can't hold a query/],
  ])("refuses %s as base URL, and doesn't repeat it", (baseUrl, message) => {
    expect(() => modelWith({ baseUrl })).toThrow(message);
    expect(() => modelWith({ baseUrl })).not.toThrow(/pass-1/);
  });

  test("loads nothing of the AI SDK before its first call", async () => {
    const program = `
      import { registerHooks } from "node:module";
      const loaded = [];
      registerHooks({
        load: (url, context, next) => {
          if (url.includes("@ai-sdk")) loaded.push(url);
          return next(url, context);
        },
      });
      const { openaiCompatibleModel } = await import("./lib/models/openai-compatible.ts");
      const model = openaiCompatibleModel({ baseUrl: "${server.url}", modelId: "tiny" });
      const before = loaded.length;
      await model.complete(${JSON.stringify(ASKED)}, [], { signal: new AbortController().signal });
      console.log(JSON.stringify([before, loaded.length > 0]));
    `;
    server.answer(five);
    const args = ["--no-warnings", "--input-type=module", "--eval", program];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(JSON.parse(stdout)).toEqual([0, true]);
  });
});
