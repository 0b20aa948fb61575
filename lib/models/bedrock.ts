/** Any model that Amazon Bedrock serves by Converse. */
import {
  BedrockRuntimeClient,
  type BedrockRuntimeClientConfig,
  ConverseCommand,
  type ConverseCommandInput,
  ConverseStreamCommand,
} from "@aws-sdk/client-bedrock-runtime";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { unlessAborted } from "../agent/abort.ts";
import type { Model } from "../agent/model.ts";
import { providerErrorFrom } from "./bedrock/errors.ts";
import { inputsIn, keepingBody } from "./bedrock/inputs.ts";
import { type Answer, answerFrom, replyFrom } from "./bedrock/reply.ts";
import { requestFor, type Settings } from "./bedrock/request.ts";
import { answerIn, type Listener } from "./bedrock/stream.ts";
import type { ProviderError } from "./errors.ts";
import { type RetryOptions, retryingAloud } from "./retry.ts";

export interface BedrockOptions extends Settings, RetryOptions {
  /** In place of one made of the next three. What it tries again by itself comes on top. */
  readonly client?: BedrockRuntimeClient;
  /** By default as the SDK finds it: in a function, the function's own. */
  readonly region?: string;
  readonly endpoint?: string;
  /** By default as the SDK finds them: in a function, those of its role. */
  readonly credentials?: NonNullable<BedrockRuntimeClientConfig["credentials"]>;
  /** Milliseconds, for a `Retry-After` that names a date. */
  readonly now?: () => number;
}

/** Its stream is asked for where somebody listens to the text, and a reply at once elsewhere. */
export const bedrockModel = (options: BedrockOptions): Model => {
  const provider = `bedrock:${options.modelId}`;
  const { client = clientFor(options), now = Date.now } = options;

  interface Where {
    readonly signal: AbortSignal;
    readonly isInAnswer?: boolean;
    readonly requestId?: string | undefined;
  }

  const failure = async (
    error: unknown,
    { signal, isInAnswer = false, requestId }: Where,
  ): Promise<ProviderError> => {
    const secrets = await unlessAborted(secretsOf(client), signal).catch(() => []);
    return providerErrorFrom(error, { provider, secrets, nowMs: now(), isInAnswer, requestId });
  };

  const orFailure = async <T>(work: () => T | Promise<T>, where: Where): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw await failure(error, where);
    }
  };

  const generated = async (input: ConverseCommandInput, signal: AbortSignal): Promise<Answer> => {
    const command = new ConverseCommand(input);
    const body = keepingBody(command);
    const sent = client.send(command, { abortSignal: signal });
    const output = await orFailure(() => unlessAborted(sent, signal), { signal });
    const where = { signal, isInAnswer: true, requestId: output.$metadata.requestId };
    const answer = await orFailure(() => answerFrom(output, inputsIn(body())), where);
    if (answer) return answer;
    throw await failure(new Error("the answer isn't whole"), where);
  };

  const streamed = async (
    input: ConverseCommandInput,
    { signal, onText }: Listener,
  ): Promise<Answer> => {
    const left = new AbortController();
    const abortSignal = AbortSignal.any([signal, left.signal]);
    try {
      const sent = client.send(new ConverseStreamCommand(input), { abortSignal });
      const { stream, $metadata } = await orFailure(() => unlessAborted(sent, signal), { signal });
      const where = { signal, isInAnswer: true, requestId: $metadata.requestId };
      const events = throwing(stream ?? noEvents(), (error) => failure(error, where));
      const answer = await answerIn(events, { signal, onText });
      if (answer) return answer;
      throw await failure(new Error("the stream ended without its end mark"), where);
    } catch (error) {
      // The SDK doesn't let go of a stream that isn't read to its end.
      left.abort();
      throw error;
    }
  };

  return {
    provider,
    complete: async (messages, tools, call) => {
      const { signal } = call;
      signal.throwIfAborted();
      const input = requestFor(messages, tools, options);
      const answer = await retryingAloud(
        (onText) => (onText ? streamed(input, { signal, onText }) : generated(input, signal)),
        call,
        options,
      );
      return replyFrom(answer, messages, provider);
    },
  };
};

/**
 * HTTP/1.1 with connections kept open: by default the SDK opens a new HTTP/2 session for each
 * request to Bedrock. There is no time limit on an answer, for a model may think for minutes: the
 * call's signal is the bound.
 */
const clientFor = ({ region, endpoint, credentials }: BedrockOptions): BedrockRuntimeClient =>
  new BedrockRuntimeClient({
    maxAttempts: 1,
    requestHandler: new NodeHttpHandler({ connectionTimeout: 5000 }),
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined ? {} : { credentials }),
  });

/** What may stand in an answer and must not in an error. */
const secretsOf = async ({ config }: BedrockRuntimeClient): Promise<string[]> => {
  const [keys, token] = await Promise.allSettled([config.credentials(), config.token?.()]);
  const { accessKeyId, secretAccessKey, sessionToken } = fulfilled(keys) ?? {};
  const secrets = [accessKeyId, secretAccessKey, sessionToken, fulfilled(token)?.token];
  return secrets.filter((secret) => secret !== undefined);
};

const fulfilled = <T>(settled: PromiseSettledResult<T>): T | undefined =>
  settled.status === "fulfilled" ? settled.value : undefined;

/** What a listener throws passes through as it is: that is raised where the events are read. */
const throwing = async function* <T>(
  events: AsyncIterable<T>,
  failure: (error: unknown) => Promise<Error>,
): AsyncGenerator<T> {
  try {
    yield* events;
  } catch (error) {
    throw await failure(error);
  }
};

const noEvents = async function* (): AsyncGenerator<never> {};
