/** Tools of an MCP server, over streamable HTTP. The SDK is loaded when they are asked for, and not before. */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Effect, type Tool, type ToolDefinition, tool } from "../agent/tool.ts";
import { toJsonObject } from "../session/json.ts";

export interface McpToolsOptions
  extends Pick<ToolDefinition<unknown, never>, "timeoutMs" | "maxResultBytes" | "largeResult"> {
  readonly url: string;
  /** With each request: an `authorization`, say. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * What a repeat would do, of all of them or of each by the server's name for it. "once" by default:
   * what a server says of its own tools is a hint, and no promise.
   */
  readonly effect?: Effect | ((name: string) => Effect);
  /** Which of them the agent gets, by the server's names. All by default. */
  readonly only?: readonly string[];
  /** Put before each name, so that two servers' tools don't meet. */
  readonly prefix?: string;
}

/**
 * The server's tools as they are now. A call carries its idempotency key in `_meta`, for servers that
 * know what to do with it; one that fails is an error result for the model.
 *
 * @throws {Error} where the server can't be reached, or hasn't one of `only`
 */
export const mcpTools = async (options: McpToolsOptions): Promise<Tool[]> => {
  const { effect = "once", only, prefix = "", url, headers, ...bounds } = options;
  const connection = connectionTo(url, headers);
  const listed = await connection.use((client) => allTools(client));
  const missing = only?.find((name) => !listed.some((it) => it.name === name));
  if (missing !== undefined) throw new Error(`${url} has no tool named ${JSON.stringify(missing)}`);
  return listed
    .filter(({ name }) => !only || only.includes(name))
    .map(({ name, description = "", inputSchema }) =>
      tool({
        ...bounds,
        name: nameFor(`${prefix}${name}`),
        description,
        parameters: toJsonObject(inputSchema),
        effect: typeof effect === "function" ? effect(name) : effect,
        run: async (args, { idempotencyKey, signal }) => {
          const meta = { "oneturn/idempotency-key": idempotencyKey };
          const call = { name, arguments: args, _meta: meta };
          const called = await connection.use((client) =>
            client.callTool(call, undefined, { signal, timeout: MAX_TIMEOUT_MS }),
          );
          // By default it is checked to be one.
          const result = called as CallToolResult;
          const text = textOf(result);
          if (result.isError) throw new Error(text || "the tool failed");
          return text;
        },
      }),
    );
};

/** The turn's signal, or the tool's own timeout, ends a call: the SDK's own limit of a minute would only come between. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Of 1 to 64 letters, digits, _ or -, as providers take them; servers may use more. */
const nameFor = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64);

interface Connection {
  use<T>(work: (client: Client) => Promise<T>): Promise<T>;
}

/** One for all calls, made when it is needed, and once more where the server has forgotten it. */
const connectionTo = (url: string, headers: McpToolsOptions["headers"] = {}): Connection => {
  let open: Promise<Client> | undefined;
  const connect = async (): Promise<Client> => {
    const [{ Client }, { StreamableHTTPClientTransport }] = await Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
    ]);
    const client = new Client({ name: "oneturn", version: "1" });
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      fetch: withoutStream,
    });
    await client.connect(transport);
    return client;
  };
  const current = (): Promise<Client> => {
    if (open) return open;
    const opening = connect();
    open = opening;
    opening.catch(() => {
      if (open === opening) open = undefined;
    });
    return opening;
  };
  return {
    use: async (work) => {
      const used = current();
      try {
        return await work(await used);
      } catch (error) {
        if (!isForgotten(error)) throw error;
        // Of several calls that learn of it, one connects.
        if (open === used) open = undefined;
        return work(await current());
      }
    },
  };
};

/** Whatever a server may want to say between calls would wake a frozen process: the stream for it is never opened. */
const withoutStream = (url: string | URL, init?: RequestInit): Promise<Response> =>
  init?.method === "GET" ? Promise.resolve(new Response(null, { status: 405 })) : fetch(url, init);

/** A server answers so where it was restarted: it has done nothing then. */
const isForgotten = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === 404;

const allTools = async (client: Client): Promise<ListedTool[]> => {
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
};

type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];
const textOf = ({ content, structuredContent }: CallToolResult): string => {
  if (content.length > 0) return content.map(partText).join("\n");
  return structuredContent === undefined ? "" : JSON.stringify(structuredContent);
};

/** A tool result is text: of what is none, the model is told that it was there. */
const partText = (part: CallToolResult["content"][number]): string => {
  switch (part.type) {
    case "text":
      return part.text;
    case "resource":
      return "text" in part.resource ? part.resource.text : `[a resource: ${part.resource.uri}]`;
    case "resource_link":
      return `[a resource: ${part.uri}]`;
    default:
      return `[${part.type}: ${part.mimeType}, which can't be shown]`;
  }
};
