/** A Bedrock server and a model that asks it, for the tests of one file. */
import { afterAll, beforeAll } from "vitest";
import type { Model, ModelReply, ToolSpec } from "../../../lib/agent/model.ts";
import { type BedrockOptions, bedrockModel } from "../../../lib/models/bedrock.ts";
import type { Message } from "../../../lib/session/message.ts";
import { ASKED, signalOf } from "../contract.ts";
import { SECRET } from "../provider-contract.ts";
import { type BedrockAnswer, type BedrockServer, bedrockServer } from "../wire-bedrock.ts";

export const SETTINGS = {
  modelId: "anthropic.claude-tiny-1:0",
  region: "eu-west-1",
  credentials: { accessKeyId: "AKIAOFANN0123456", secretAccessKey: SECRET },
};

export const FIVE: BedrockAnswer = { kind: "reply", reply: { text: "five" } };

export interface Ask {
  readonly answers?: readonly BedrockAnswer[];
  readonly messages?: readonly Message[];
  readonly tools?: readonly ToolSpec[];
  readonly options?: Partial<BedrockOptions>;
  readonly signal?: AbortSignal;
  /** Called with the text as it comes; without it, the reply is asked for at once. */
  readonly onText?: (delta: string) => void;
  readonly onRestart?: () => void;
}

export interface Scene {
  readonly server: () => BedrockServer;
  readonly model: (options?: Partial<BedrockOptions>) => Model;
  readonly ask: (what?: Ask) => Promise<ModelReply>;
  /** Of the newest request. */
  readonly body: () => Record<string, unknown>;
}

export const bedrockScene = (): Scene => {
  let server: BedrockServer;
  beforeAll(async () => {
    server = await bedrockServer();
  });
  afterAll(() => server.close());

  const model: Scene["model"] = (options = {}) =>
    bedrockModel({ ...SETTINGS, endpoint: server.url, sleep: async () => {}, ...options });

  return {
    server: () => server,
    model,
    ask: ({ answers = [FIVE], messages = ASKED, tools = [], options = {}, ...call } = {}) => {
      server.answer(...answers);
      return model(options).complete(messages, tools, { signal: signalOf(), ...call });
    },
    body: () => server.sent.at(-1)?.body as Record<string, unknown>,
  };
};
