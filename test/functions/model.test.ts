import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Session } from "../../lib/session/session.ts";
import type { WireServer } from "../models/wire.ts";
import { bedrockServer } from "../models/wire-bedrock.ts";
import { openaiServer } from "../models/wire-openai.ts";

describe("the agent of the functions, with the model that the settings name", () => {
  let servers: { readonly bedrock: WireServer; readonly openai: WireServer };
  beforeAll(async () => {
    servers = { bedrock: await bedrockServer(), openai: await openaiServer() };
  });
  afterAll(() => Promise.all(Object.values(servers).map((server) => server.close())));
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  const agentWith = async (env: Readonly<Record<string, string>>) => {
    vi.resetModules();
    vi.stubEnv("TABLE_NAME", "sessions");
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    return (await import("../../functions/agent.ts")).agent;
  };

  test.each([
    [
      "bedrock",
      () => ({
        MODEL: "bedrock:anthropic.claude-x",
        AWS_REGION: "eu-west-1",
        AWS_ACCESS_KEY_ID: "id",
        AWS_SECRET_ACCESS_KEY: "secret",
        AWS_ENDPOINT_URL_BEDROCK_RUNTIME: servers.bedrock.url,
      }),
    ],
    [
      "openai",
      () => ({ MODEL: `openai-compatible:${servers.openai.url}#llama`, MODEL_API_KEY: "k" }),
    ],
  ] as const)("runs a whole turn on %s, its tools and all", async (name, env) => {
    const agent = await agentWith(env());
    const server = servers[name];
    const calls = [
      { id: "c1", name: "add", arguments: '{"a":2,"b":3}' },
      { id: "c2", name: "multiply", arguments: '{"a":2,"b":3}' },
    ];
    for (const onEvent of [undefined, () => {}]) {
      server.answer(
        { kind: "reply", reply: { calls, usage: { inputTokens: 5, outputTokens: 2 } } },
        { kind: "reply", reply: { text: "5 and 6", usage: { inputTokens: 9, outputTokens: 3 } } },
      );
      const session = new Session();
      const { final, usage } = await agent.runTurn(session, "2 and 3?", onEvent ? { onEvent } : {});
      expect(final).toBe("5 and 6");
      expect(usage).toEqual({ inputTokens: 14, outputTokens: 5 });
      expect(server.requests.at(-1)).toMatchObject({ streamed: onEvent !== undefined });
      expect(server.requests.at(-1)?.messages.slice(1)).toMatchObject([
        { role: "assistant", calls: calls.map(({ id }) => ({ id, arguments: { a: 2, b: 3 } })) },
        { role: "tool", id: "c1", text: "5" },
        { role: "tool", id: "c2", text: "6" },
      ]);
    }
  });
});
