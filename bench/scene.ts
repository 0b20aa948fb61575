/** The conversation that is measured: turns of 1.9 KB, and an agent that plays them. */
import { Agent } from "../lib/agent/agent.ts";
import type { Model } from "../lib/agent/model.ts";
import { tool } from "../lib/agent/tool.ts";
import {
  assistantMessage,
  type Message,
  toolMessage,
  userMessage,
} from "../lib/session/message.ts";
import { prose, type Random, seededRandom } from "./prose.ts";

/** What is said in one turn. */
export interface Scene {
  readonly input: string;
  readonly callId: string;
  readonly query: string;
  readonly found: string;
  readonly answer: string;
}

/** The same for the same number of a turn, and different for each. */
export const sceneOf = (turn: number): Scene => {
  const random = seededRandom(turn);
  return {
    input: prose(200, random),
    callId: `call_${randomText(24, random)}`,
    query: prose(40, random),
    found: prose(1000, random),
    answer: prose(500, random),
  };
};

export const messagesOf = ({ input, callId, query, found, answer }: Scene): Message[] => [
  userMessage(input),
  assistantMessage("", [{ id: callId, name: "search", arguments: { query } }]),
  toolMessage(callId, found),
  assistantMessage(answer),
];

export interface AgentParts {
  readonly scene: Scene;
  /** Resolves when the model has thought long enough. */
  readonly think: () => Promise<void>;
  /** In turns; the whole history by default. */
  readonly window?: number | undefined;
}

export const agentFor = ({ scene, think, window }: AgentParts): Agent => {
  const [, call, , answer] = messagesOf(scene);
  if (!call || !answer) throw new Error("a scene has four messages");
  const model: Model = {
    complete: async (messages) => {
      await think();
      const message = messages.at(-1)?.role === "user" ? call : answer;
      return { message, usage: { inputTokens: 400, outputTokens: 120 } };
    },
  };
  const search = tool({
    name: "search",
    description: "Searches the documents",
    parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
    effect: "none",
    run: () => scene.found,
  });
  return new Agent({
    model,
    tools: [search],
    ...(window === undefined ? {} : { window: { turns: window } }),
  });
};

const randomText = (length: number, random: Random): string =>
  Array.from({ length }, () => LETTERS[Math.floor(random() * LETTERS.length)]).join("");

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
