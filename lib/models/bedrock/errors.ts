/** What the SDK threw, as a `ProviderError` without a key in it. */
import { fieldsOf, isTransientStatus, ProviderError, retryAfterMs } from "../errors.ts";
import { withoutSecrets } from "../secrets.ts";

export interface ErrorContext {
  readonly provider: string;
  /** Keys and the like, which no message may show. */
  readonly secrets: readonly string[];
  readonly nowMs: number;
  /** Of the answer that broke; a refusal tells its own. */
  readonly requestId: string | undefined;
  /** Whether an answer had begun. What breaks one is worth another try, unless it says no. */
  readonly isInAnswer: boolean;
}

/** The error itself is left behind: it holds the answer, and what the answer quotes. */
export const providerErrorFrom = (error: unknown, context: ErrorContext): ProviderError => {
  const { $metadata, $response } = fieldsOf(error);
  const { httpStatusCode, requestId } = fieldsOf($metadata);
  const headers = fieldsOf(fieldsOf($response)["headers"]);
  // An answer that began with 200 and can't be read has none.
  const status =
    typeof httpStatusCode === "number" && httpStatusCode >= 300 ? httpStatusCode : undefined;
  const isInAnswer = context.isInAnswer || ($response !== undefined && status === undefined);
  return new ProviderError(withoutSecrets(textOf(error, isInAnswer), context.secrets), {
    provider: context.provider,
    status,
    requestId: textIn(requestId) ?? textIn(headers["x-amzn-requestid"]) ?? context.requestId,
    isTransient: isTransient(error, status, isInAnswer),
    retryAfterMs: retryAfterMs(textIn(headers["retry-after"]), context.nowMs),
  });
};

const isTransient = (error: unknown, status: number | undefined, isInAnswer: boolean): boolean => {
  const { name, code, originalStatusCode } = fieldsOf(error);
  // The model's own, where Bedrock only passes on that it failed.
  if (typeof originalStatusCode === "number") return isTransientStatus(originalStatusCode);
  if (typeof name === "string" && PASSING.has(name)) return true;
  if (status !== undefined) return isTransientStatus(status);
  if (typeof name === "string" && REFUSED.test(name)) return false;
  if (isInAnswer || name === "TimeoutError") return true;
  return typeof code === "string" && BROKEN.test(code);
};

/** Some of these come with a status of 4xx, and in a stream with none. */
const PASSING: ReadonlySet<string> = new Set([
  "InternalServerException",
  "ModelErrorException",
  "ModelNotReadyException",
  "ModelStreamErrorException",
  "ModelTimeoutException",
  "ServiceUnavailableException",
  "ThrottlingException",
  "TooManyRequestsException",
]);

/** In a stream, where there is no status to tell. */
const REFUSED = /^(Validation|AccessDenied|ResourceNotFound|ServiceQuotaExceeded)Exception$/;

/** Of sockets, names and HTTP itself; a certificate that is refused stays so. */
const BROKEN =
  /^(E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_AGAIN|PROTO)|HPE_|ERR_HTTP2_|ERR_STREAM_PREMATURE)/;

/** Of several lines the first: where a signature is refused, the others quote signed headers. */
const textOf = (error: unknown, isInAnswer: boolean): string => {
  const { name, message } = fieldsOf(error);
  // These tell of the code that read the answer, and quote it.
  if (name === "SyntaxError" || (isInAnswer && error instanceof TypeError)) {
    return "the answer isn't as the protocol has it";
  }
  const [line = ""] = (textIn(message) ?? "").trim().split(/[\r\n]/, 1);
  const text = line === "" ? "no reason given" : line;
  return typeof name === "string" && /^\w+Exception$/.test(name) ? `${name}: ${text}` : text;
};

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" ? value : undefined;
