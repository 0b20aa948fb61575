/** A language model of the AI SDK's interface that answers by a script, and tells what it was asked. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelCallOptions } from "../../../lib/agent/model.ts";
import { type AiSdkOptions, aiSdkModel } from "../../../lib/models/ai-sdk.ts";
import type { Message } from "../../../lib/session/message.ts";
import { ASKED, signalOf } from "../contract.ts";

type CallOptions = Parameters<LanguageModelV4["doGenerate"]>[0];
export type Content = Awaited<ReturnType<LanguageModelV4["doGenerate"]>>["content"];
export type Stream = Awaited<ReturnType<LanguageModelV4["doStream"]>>["stream"];
export type StreamPart = Stream extends ReadableStream<infer Part> ? Part : never;
type Finish = Extract<StreamPart, { type: "finish" }>["finishReason"];

const USAGE = {
  inputTokens: { total: 12, noCache: 12, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 34, text: 34, reasoning: undefined },
};
const STOP: Finish = { unified: "stop", raw: "end_turn" };
export const finish = (finishReason = STOP): StreamPart => ({
  type: "finish",
  finishReason,
  usage: USAGE,
});

export const text = (...deltas: string[]): StreamPart[] => [
  { type: "text-start", id: "t" },
  ...deltas.map((delta): StreamPart => ({ type: "text-delta", id: "t", delta })),
  { type: "text-end", id: "t" },
];

/** One for each call; an error stands for a call that throws, or a stream that breaks there. */
export interface Script {
  readonly contents?: readonly (Readonly<Content> | Error)[];
  readonly finishReason?: Finish;
  readonly streams?: readonly (readonly (StreamPart | Error)[])[];
}

export const languageModel = ({ contents = [], finishReason = STOP, streams = [] }: Script) => {
  const asked: CallOptions[] = [];
  const model: LanguageModelV4 = {
    specificationVersion: "v4",
    provider: "hand.made",
    modelId: "tiny",
    supportedUrls: {},
    doGenerate: async (options) => {
      const content = contents[asked.push(options) - 1];
      if (content instanceof Error) throw content;
      return { content: [...(content ?? [])], finishReason, usage: USAGE, warnings: [] };
    },
    doStream: async (options) => {
      const parts = (streams[asked.push(options) - 1] ?? []).values();
      const stream: Stream = new ReadableStream({
        pull: (controller) => {
          const { value: part } = parts.next();
          if (part instanceof Error) controller.error(part);
          else if (part) controller.enqueue(part);
          else controller.close();
        },
      });
      return { stream, response: { headers: { "X-Request-Id": "r-1" } } };
    },
  };
  return { model, asked };
};

export const ask = async (
  script: Script,
  options: Partial<ModelCallOptions> & AiSdkOptions = {},
  messages: readonly Message[] = ASKED,
) => {
  const { model, asked } = languageModel(script);
  const pieces: string[] = [];
  const call = {
    signal: signalOf(),
    ...(script.streams ? { onText: (delta: string) => void pieces.push(delta) } : {}),
    onRestart: () => void pieces.push("<restart>"),
    ...options,
  };
  const answered = aiSdkModel(model, { sleep: async () => {}, ...options }).complete(
    messages,
    [],
    call,
  );
  const [outcome] = await Promise.allSettled([answered]);
  const reply = outcome.status === "fulfilled" ? outcome.value : undefined;
  const error: unknown = outcome.status === "rejected" ? outcome.reason : undefined;
  return { reply, error, pieces, asked };
};
