import { expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { tool } from "../../lib/agent/tool.ts";
import { bedrockModel } from "../../lib/models/bedrock.ts";
import { Session } from "../../lib/session/session.ts";
import { bedrockScene, FIVE, SETTINGS } from "./bedrock/scene.ts";
import { ASKED, modelContract, signalOf } from "./contract.ts";
import { historiesContract } from "./histories-contract.ts";
import { type Provider, providerContract } from "./provider-contract.ts";
import { bedrockServer } from "./wire-bedrock.ts";

const provider: Provider = {
  open: bedrockServer,
  model: ({ url }, retries) => bedrockModel({ ...SETTINGS, endpoint: url, ...retries }),
  reasons: true,
  argumentsAreText: "streamed",
};
providerContract("Bedrock", provider);
historiesContract("Bedrock", provider);

const { server, model } = bedrockScene();

modelContract("Bedrock", async () => {
  server().answer(FIVE);
  return { model: model(), messages: ASKED };
});

const add = tool<{ a: number; b: number }>({
  name: "add",
  description: "a plus b",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  effect: "none",
  run: ({ a, b }) => a + b,
});

test.each([
  ["at once", undefined],
  ["streamed", () => {}],
])("whole turns run, with reasoning, parallel tools and usage (%s)", async (_how, onEvent) => {
  const usage = { inputTokens: 10, outputTokens: 5 };
  const agent = new Agent({ model: model(), tools: [add], system: "Be kind." });
  const session = new Session();
  const options = onEvent ? { onEvent } : {};
  server().answer(
    { kind: "refusal", status: 503, message: "busy" },
    {
      kind: "reply",
      reply: {
        reasoning: { text: "both at once", signature: "sig" },
        text: "I add",
        calls: [
          { id: "c1", name: "add", arguments: '{"a":2,"b":3}' },
          { id: "c2", name: "add", arguments: '{"a":2}' },
        ],
        usage,
      },
    },
    { kind: "reply", reply: { text: "five", usage } },
  );
  const first = await agent.runTurn(session, "What is 2 + 3?", options);
  expect(first).toMatchObject({
    final: "five",
    finish: "final",
    usage: { inputTokens: 20, outputTokens: 10 },
  });
  server().answer(FIVE);
  const second = await agent.runTurn(session, "Once more?", options);
  expect(second.final).toBe("five");
  const { system, messages } = server().requests.at(-1) ?? {};
  expect(system).toBe("Be kind.");
  expect(messages).toMatchObject([
    { role: "user", text: "What is 2 + 3?" },
    { reasoning: { text: "both at once", signature: "sig" }, calls: [{ id: "c1" }, { id: "c2" }] },
    { role: "tool", id: "c1", text: "5" },
    { role: "tool", id: "c2", text: expect.stringMatching(/^error:/) },
    { role: "assistant", text: "five" },
    { role: "user", text: "Once more?" },
  ]);
});

test("a model keeps its connection, and takes another where that was broken", async () => {
  const before = server().connections();
  const kept = model();
  const texts: string[] = [];
  for (const answer of [FIVE, FIVE, { kind: "reset" } as const, FIVE]) {
    for (const onText of [undefined, () => {}]) {
      server().answer(answer, FIVE);
      const { message } = await kept.complete(ASKED, [], { signal: signalOf(), onText });
      texts.push(message.content);
    }
  }
  expect(new Set(texts)).toEqual(new Set(["five"]));
  expect(server().connections() - before).toBe(3);
});
