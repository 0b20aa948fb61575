/**
 * Any language model of the AI SDK: what an `@ai-sdk/*` package calls a language model, or another
 * object of that interface. Nothing of the SDK is loaded here.
 */
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import type { Model, ToolSpec } from "../agent/model.ts";
import type { JsonObject } from "../session/json.ts";
import type { Message } from "../session/message.ts";
import { type ErrorContext, providerErrorFrom } from "./ai-sdk/errors.ts";
import { type PromptOptions, promptFor, toolsFor } from "./ai-sdk/prompt.ts";
import { type Answer, type Finish, finishFrom, replyFrom } from "./ai-sdk/reply.ts";
import { answerIn, type StreamPart } from "./ai-sdk/stream.ts";
import type { ProviderError } from "./errors.ts";
import { type RetryOptions, retryingAloud } from "./retry.ts";

export type AiSdkLanguageModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4;

/** What is used of one, the same in all versions of the interface. */
interface LanguageModel {
  readonly provider: string;
  readonly modelId: string;
  doGenerate(request: Request): PromiseLike<Answer & Responded>;
  doStream(request: Request): PromiseLike<StreamBegun>;
}

interface Responded {
  readonly response?: { readonly headers?: ErrorContext["headers"] };
}

interface StreamBegun extends Responded {
  readonly stream: ReadableStream<StreamPart>;
}

export interface AiSdkOptions extends RetryOptions {
  /** Of one answer. */
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** By provider, as its package documents them. */
  readonly providerOptions?: Record<string, JsonObject>;
  /** Keys and the like, which no error may show. Those of well-known forms are hidden anyway. */
  readonly secrets?: readonly string[];
  /** Milliseconds, for a `Retry-After` that names a date. */
  readonly now?: () => number;
}

/** Its stream is asked for where somebody listens to the text, and a reply at once where nobody does. */
export const aiSdkModel = (given: AiSdkLanguageModel, options: AiSdkOptions = {}): Model => {
  const languageModel: LanguageModel = given;
  const provider = `${languageModel.provider}:${languageModel.modelId}`;
  const { secrets = [], now = Date.now } = options;

  const failureIn =
    (isInAnswer: boolean, headers?: ErrorContext["headers"]) =>
    (error: unknown): ProviderError =>
      providerErrorFrom(error, { provider, secrets, nowMs: now(), isInAnswer, headers });

  const generated = async (request: Request): Promise<Answer> => {
    const answer = await resultOf(() => languageModel.doGenerate(request), request.abortSignal);
    const finish = finishFrom(answer.finishReason);
    if (finish.isFailure) throw failureIn(true, answer.response?.headers)(brokenOff(finish));
    return answer;
  };

  const streamed = async (request: Request, onText: (delta: string) => void): Promise<Answer> => {
    const signal = request.abortSignal;
    const { stream, response } = await resultOf(
      () => languageModel.doStream(request),
      signal,
      // Too late for anybody to read it.
      (late) => void late.stream.cancel().catch(() => {}),
    );
    const failure = failureIn(true, response?.headers);
    const answer = await answerIn(stream, { signal, onText, failure });
    if (!answer) throw failure("the stream ended without its end mark");
    const finish = finishFrom(answer.finishReason);
    if (finish.isFailure || finish.isUnsaid) throw failure(brokenOff(finish));
    return answer;
  };

  /** Rejects as soon as the signal aborts, whether or not the model heeds it. */
  const resultOf = async <T>(
    call: () => PromiseLike<T>,
    signal: AbortSignal,
    discard: (late: T) => void = () => {},
  ): Promise<T> => {
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => aborted.reject(signal.reason);
    signal.addEventListener("abort", abort);
    try {
      const called = Promise.resolve(call());
      called.then(
        (late) => signal.aborted && discard(late),
        () => {},
      );
      return await Promise.race([called, aborted.promise]);
    } catch (error) {
      throw failureIn(false)(error);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  };

  return {
    provider,
    complete: async (messages, tools, call) => {
      const { signal } = call;
      signal.throwIfAborted();
      const answer = await retryingAloud(
        (onText) => {
          // Made for each try: nobody promises that a model leaves it as it is.
          const request = requestFor(messages, { tools, provider, options, signal });
          return onText ? streamed(request, onText) : generated(request);
        },
        call,
        options,
      );
      return replyFrom(answer, messages, provider);
    },
  };
};

const brokenOff = ({ word }: Finish): string => `the answer broke off (${word})`;

type Request = ReturnType<typeof requestFor>;

interface Asked extends PromptOptions {
  readonly tools: readonly ToolSpec[];
  readonly options: AiSdkOptions;
  readonly signal: AbortSignal;
}

const requestFor = (messages: readonly Message[], asked: Asked) => {
  const { tools, signal, options } = asked;
  const { maxTokens, temperature, providerOptions } = options;
  return {
    prompt: promptFor(messages, asked),
    abortSignal: signal,
    ...(tools.length > 0 ? { tools: toolsFor(tools) } : {}),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(providerOptions === undefined ? {} : { providerOptions }),
  };
};
