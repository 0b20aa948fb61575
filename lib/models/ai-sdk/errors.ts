/** What a model of the AI SDK threw, or its stream brought, as a `ProviderError` without a key in it. */
import { fieldsOf, isTransientStatus, ProviderError, retryAfterMs } from "../errors.ts";
import { withoutSecrets } from "../secrets.ts";

export interface ErrorContext {
  readonly provider: string;
  /** Keys and the like, which no message may show. */
  readonly secrets: readonly string[];
  readonly nowMs: number;
  /** Whether an answer had begun. What breaks one is worth another try, unless it says that it isn't. */
  readonly isInAnswer: boolean;
  /** Of the answer that began. */
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
}

/** Errors are told by their fields, not by their class: each provider may bring its own copy of that. */
export const providerErrorFrom = (error: unknown, context: ErrorContext): ProviderError => {
  const status = statusOf(error);
  const headers = lowerCased(fieldsOf(fieldsOf(error)["responseHeaders"] ?? context.headers));
  const retryAfter = headers["retry-after"];
  return new ProviderError(withoutSecrets(textOf(error, status), context.secrets), {
    provider: context.provider,
    status,
    requestId: REQUEST_IDS.map((name) => headers[name]).find((id) => id !== undefined),
    isTransient: isTransient(error, status, context.isInAnswer),
    retryAfterMs: retryAfterMs(retryAfter, context.nowMs),
  });
};

const REQUEST_IDS = ["x-request-id", "request-id", "x-amzn-requestid", "apim-request-id"];

/** Of a refusal. Streams tell it too, as a code; an answer that began with 200 and broke has none. */
const statusOf = (error: unknown): number | undefined => {
  const { statusCode, code, status } = fieldsOf(error);
  return [statusCode, code, status].find(
    (value): value is number => typeof value === "number" && value >= 400 && value < 600,
  );
};

const isTransient = (error: unknown, status: number | undefined, isInAnswer: boolean): boolean => {
  const { isRetryable, statusCode } = fieldsOf(error);
  const words = wordsOf(error);
  if (words.some((word) => UNPAID.test(word))) return false;
  if (status !== undefined) {
    const own = isTransientStatus(status);
    // The SDK counts 425 as final.
    return typeof isRetryable === "boolean" && status !== 425 ? isRetryable : own;
  }
  if (words.some((word) => REFUSED.test(word))) return false;
  if (isInAnswer || typeof statusCode === "number") return true;
  if (isRetryable !== undefined) return isRetryable === true;
  return isBroken(error);
};

/** Such a 429 lasts until somebody pays. */
const UNPAID = /^(insufficient_quota|billing)/;

const REFUSED =
  /^(invalid_(request|prompt|api_key)|authentication|permission|(model_)?not_found|context_length)/;

/** Codes and types that the provider gave, at the places where it may. */
const wordsOf = (error: unknown): string[] => {
  const data = fieldsOf(fieldsOf(error)["data"]);
  return [fieldsOf(error), data, fieldsOf(data["error"])]
    .flatMap(({ code, type }) => [code, type])
    .filter((word) => typeof word === "string");
};

/** A connection that broke, an answer that makes no sense, a provider's own time limit. */
const isBroken = (error: unknown): boolean => {
  const seen = new Set<unknown>();
  for (let at = error; at instanceof Error && !seen.has(at); at = at.cause) {
    seen.add(at);
    const { code } = fieldsOf(at);
    if (typeof code === "string" && /^(E[A-Z_]+|UND_ERR_\w+)$/.test(code)) return true;
    if (BROKEN_NAMES.test(at.name) || /^(fetch failed|terminated)$/.test(at.message)) return true;
  }
  return false;
};

const BROKEN_NAMES =
  /^(AbortError|TimeoutError|AI_(EmptyResponseBody|InvalidResponseData|JSONParse|TypeValidation|NoContentGenerated)Error)$/;

const textOf = (error: unknown, status: number | undefined): string => {
  // Providers like to quote the key that they refuse.
  if (status === 401) return "the credentials were refused";
  const { name, message } = fieldsOf(error);
  // These quote the whole answer.
  if (name === "AI_JSONParseError" || name === "AI_TypeValidationError") {
    return "the answer isn't as the protocol has it";
  }
  const text = typeof error === "string" ? error : message;
  if (typeof text !== "string" || text.trim() === "") return "no reason given";
  return text;
};

const lowerCased = (headers: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === "string" ? [[name.toLowerCase(), value]] : [],
    ),
  );
