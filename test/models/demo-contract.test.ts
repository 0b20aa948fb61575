import type { ToolSpec } from "../../lib/agent/model.ts";
import { demoModel } from "../../lib/models/demo.ts";
import { assistantMessage, toolMessage } from "../../lib/session/message.ts";
import { ASKED, modelContract } from "./contract.ts";

const add: ToolSpec = { name: "add", description: "a plus b", parameters: { type: "object" } };

const called = assistantMessage("", [
  { id: "demo_call_1", name: "add", arguments: { a: 2, b: 3 } },
]);

modelContract("the demo with its tool's result", async () => ({
  model: demoModel(),
  messages: [...ASKED, called, toolMessage("demo_call_1", "5")],
  tools: [add],
}));

modelContract("the demo without a tool", async () => ({ model: demoModel(), messages: ASKED }));
