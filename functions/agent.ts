/** The agent that every function runs. This file is yours: put your model, tools and prompt here. */
import { Agent, tool } from "../lib/index.ts";
import { config } from "./config.ts";
import { configuredModel } from "./model.ts";

const arithmetic = (name: string, description: string, compute: (a: number, b: number) => number) =>
  tool({
    name,
    description,
    parameters: {
      type: "object",
      properties: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
      additionalProperties: false,
    },
    effect: "none",
    run: ({ a, b }: { a: number; b: number }) => {
      const result = compute(a, b);
      if (!Number.isFinite(result))
        throw new RangeError(`${name} of ${a} and ${b} has no finite result`);
      return result;
    },
  });

export const agent = new Agent({
  model: await configuredModel(),
  system: config.system || "You work out arithmetic, one tool call at a time.",
  tools: [
    arithmetic("add", "a plus b", (a, b) => a + b),
    arithmetic("subtract", "a minus b", (a, b) => a - b),
    arithmetic("multiply", "a times b", (a, b) => a * b),
    arithmetic("divide", "a divided by b", (a, b) => a / b),
  ],
  maxSteps: config.maxSteps,
});
