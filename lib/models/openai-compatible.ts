/**
 * Any server that speaks OpenAI's chat completions: Ollama, vLLM, llama.cpp, and most services. What
 * speaks to it is loaded at the first call, so that a start which doesn't come to one pays nothing.
 */
import type { Model } from "../agent/model.ts";
import type { JsonObject } from "../session/json.ts";
import { type AiSdkOptions, aiSdkModel } from "./ai-sdk.ts";

export interface OpenAICompatibleOptions extends Omit<AiSdkOptions, "providerOptions" | "secrets"> {
  /** Up to what `/chat/completions` goes behind, such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  readonly modelId: string;
  /** Goes out as a bearer token. Servers of one's own need none. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly queryParams?: Readonly<Record<string, string>>;
  /** Put into each request as it is, such as `{ reasoning_effort: "low" }`. */
  readonly body?: JsonObject;
}

/** @throws {TypeError} for a base URL that isn't one, or holds what it shouldn't */
export const openaiCompatibleModel = ({
  baseUrl,
  modelId,
  apiKey,
  headers = {},
  queryParams = {},
  body = {},
  ...options
}: OpenAICompatibleOptions): Model => {
  const baseURL = checkedUrl(baseUrl);
  const secrets = [
    apiKey ?? "",
    ...Object.entries({ ...headers, ...queryParams })
      .filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
      .map(([, value]) => value),
  ].filter((secret) => secret.length >= SECRET_LENGTH);

  const load = async (): Promise<Model> => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const server = createOpenAICompatible({
      name: NAME,
      baseURL,
      ...(apiKey ? { apiKey } : {}),
      headers: { ...headers },
      queryParams: { ...queryParams },
      includeUsage: true,
      transformRequestBody: (request) => ({ ...request, ...body }),
    });
    return aiSdkModel(server.chatModel(modelId), { ...options, secrets });
  };

  let loading: Promise<Model> | undefined;
  return {
    provider: `${NAME}.chat:${modelId}`,
    complete: async (messages, tools, call) => {
      call.signal.throwIfAborted();
      loading ??= load();
      const model = await loading;
      return model.complete(messages, tools, call);
    },
  };
};

const NAME = "openai-compatible";

/** Shorter ones hide nothing: `none` and `EMPTY` are what servers without keys are given. */
const SECRET_LENGTH = 8;

const checkedUrl = (baseUrl: string): string => {
  // No message says the URL: it may hold a password.
  const url = URL.parse(baseUrl);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TypeError("baseUrl must be an http or https URL");
  }
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("baseUrl can't hold credentials: they go into apiKey or headers");
  }
  if (url.search !== "" || url.hash !== "") {
    throw new TypeError("baseUrl can't hold a query: it goes into queryParams");
  }
  return baseUrl;
};
