import { type Tool, tool } from "../../lib/agent/tool.ts";
import type { JsonValue } from "../../lib/session/json.ts";
import type { Message, ToolCall } from "../../lib/session/message.ts";

/** JSON Schema of arguments that are any object. */
export const anyObject = { type: "object" };

export const addTool = tool<{ a: number; b: number }>({
  name: "add",
  description: "adds two numbers",
  parameters: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  run: ({ a, b }) => a + b,
});

export const call = (id: string, name: string, args: JsonValue = {}): ToolCall => ({
  id,
  name,
  arguments: args,
});

export const addCall = call("c1", "add", { a: 1, b: 2 });

export const shape = (messages: readonly Message[]): string =>
  messages.map(({ role, content }) => `${role}:${content}`).join(" | ");

/** What a tool gives outside of a turn. */
export const resultOf = (it: Tool, args: JsonValue = {}): Promise<string> =>
  it.call(args, {
    idempotencyKey: "0".repeat(64),
    sessionId: "s1",
    turnId: "t1",
    fence: 0,
    signal: new AbortController().signal,
    metadata: {},
  });
