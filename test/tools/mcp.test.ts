import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, test } from "vitest";
import type { Tool } from "../../lib/agent/tool.ts";
import { mcpTools } from "../../lib/tools/mcp.ts";

interface Called {
  readonly name: string;
  readonly args: unknown;
  readonly key: unknown;
}

type Answer = (args: Record<string, unknown>, signal: AbortSignal) => unknown;

const SCHEMA = {
  type: "object" as const,
  properties: { n: { type: "number" } },
  additionalProperties: false,
};

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A real server of the protocol, two tools a page. */
const serverWith = async (tools: Record<string, Answer>) => {
  const called: Called[] = [];
  const requests: { readonly method: string; readonly authorization: string | undefined }[] = [];
  const names = Object.keys(tools);
  const newServer = () => {
    const { server } = new McpServer(
      { name: "test", version: "1" },
      { capabilities: { tools: {} } },
    );
    server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
      const from = Number(params?.cursor ?? 0);
      const page = names.slice(from, from + 2);
      return {
        tools: page.map((name) => ({ name, description: `does ${name}`, inputSchema: SCHEMA })),
        ...(from + 2 < names.length ? { nextCursor: String(from + 2) } : {}),
      };
    });
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
      const { name, arguments: args = {}, _meta: meta } = params;
      called.push({ name, args, key: meta?.["oneturn/idempotency-key"] });
      return (await tools[name]?.(args, signal)) as CallToolResult;
    });
    return server;
  };
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const http = createServer((request, response) => {
    void (async () => {
      const { method = "", headers } = request;
      requests.push({ method, authorization: headers.authorization });
      const id = String(headers["mcp-session-id"] ?? "");
      const known = sessions.get(id);
      if (id && !known) return void response.writeHead(404).end();
      const transport =
        known ??
        new StreamableHTTPServerTransport({
          sessionIdGenerator: randomUUID,
          onsessioninitialized: (made) => void sessions.set(made, transport),
        });
      if (!known) await newServer().connect(transport);
      const body = method === "POST" ? (JSON.parse(await text(request)) as unknown) : undefined;
      await transport.handleRequest(request, response, body);
    })();
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const close = async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  closers.push(close);
  return { url: `http://127.0.0.1:${port}/mcp`, called, requests, forget: () => sessions.clear() };
};

const says = (...texts: string[]) => ({ content: texts.map((it) => ({ type: "text", text: it })) });

const call = (it: Tool | undefined, args = {}, signal = new AbortController().signal) =>
  it?.call(args, {
    idempotencyKey: "k".repeat(64),
    sessionId: "s",
    turnId: "t",
    fence: 1,
    signal,
    metadata: {},
  });

describe("the tools of an MCP server", () => {
  test("are all of its pages', with their schemas, and the effects that the user names", async () => {
    const { url } = await serverWith({ a: () => says(), "b.c/d": () => says(), e: () => says() });
    const tools = await mcpTools({
      url,
      prefix: "x_",
      effect: (name) => (name === "a" ? "none" : "idempotent"),
    });
    expect(tools.map(({ spec, effect }) => [spec.name, spec.description, effect])).toEqual([
      ["x_a", "does a", "none"],
      ["x_b_c_d", "does b.c/d", "idempotent"],
      ["x_e", "does e", "idempotent"],
    ]);
    expect(tools[0]?.spec.parameters).toEqual(SCHEMA);
    expect(
      (await mcpTools({ url, only: ["e"] })).map(({ spec, effect }) => [spec.name, effect]),
    ).toEqual([["e", "once"]]);
    await expect(mcpTools({ url, only: ["nope"] })).rejects.toThrow('has no tool named "nope"');
  });

  test("get arguments, the idempotency key and the user's headers, and never a stream beside", async () => {
    const { url, called, requests } = await serverWith({ a: ({ n }) => says(`got ${n}`, "é😀") });
    const [a] = await mcpTools({ url, headers: { authorization: "Bearer x" } });
    expect(await call(a, { n: 5 })).toBe("got 5\né😀");
    expect(called).toEqual([{ name: "a", args: { n: 5 }, key: "k".repeat(64) }]);
    expect(new Set(requests.map(({ method }) => method))).toEqual(new Set(["POST"]));
    expect(new Set(requests.map(({ authorization }) => authorization))).toEqual(
      new Set(["Bearer x"]),
    );
    expect(await call(a, { n: "five" })).toMatch(/^error: invalid arguments: .*n: Instance type/);
    expect(called).toHaveLength(1);
  });

  test("give what isn't text as a word that it was there, and structured content as JSON", async () => {
    const { url } = await serverWith({
      mixed: () => ({
        content: [
          { type: "text", text: "see" },
          { type: "image", data: "aGk=", mimeType: "image/png" },
          { type: "resource", resource: { uri: "file:///a", text: "inside" } },
        ],
      }),
      data: () => ({ content: [], structuredContent: { n: 1 } }),
    });
    const [mixed, data] = await mcpTools({ url });
    expect(await call(mixed)).toBe("see\n[image: image/png, which can't be shown]\ninside");
    expect(await call(data)).toBe('{"n":1}');
  });

  test("fail as results that the model can act on", async () => {
    const { url } = await serverWith({
      says: () => ({ ...says("no such city"), isError: true }),
      throws: () => {
        throw new Error("boom");
      },
    });
    const [said, thrown] = await mcpTools({ url });
    expect(await call(said)).toBe("error: no such city");
    expect(await call(thrown)).toMatch(/^error: .*boom/);
  });

  test("work on after the server has forgotten the session, each call once", async () => {
    const { url, called, forget } = await serverWith({ a: () => says("ok") });
    const [a] = await mcpTools({ url });
    forget();
    expect(await Promise.all([call(a), call(a), call(a)])).toEqual(["ok", "ok", "ok"]);
    expect(called).toHaveLength(3);
  });

  test("end with their turn, or with their own time", async () => {
    let aborted = 0;
    const never: Answer = (_args, signal) => {
      signal.addEventListener("abort", () => aborted++);
      return new Promise(() => {});
    };
    const { url, called } = await serverWith({ a: never });
    const [slow] = await mcpTools({ url, timeoutMs: 50 });
    expect(await call(slow)).toMatch(/^error: no result within 50 ms/);
    await expect.poll(() => aborted).toBe(1);
    const controller = new AbortController();
    const [free] = await mcpTools({ url });
    const called2 = call(free, {}, controller.signal);
    await expect.poll(() => called.length).toBe(2);
    controller.abort(new Error("enough"));
    expect(await called2).toMatch(/^error: /);
    await expect.poll(() => aborted).toBe(2);
  });

  test("are an error at once where there is no server", async () => {
    await expect(mcpTools({ url: "http://127.0.0.1:9/mcp" })).rejects.toThrow();
  });
});
