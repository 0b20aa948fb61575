/** Errors as RFC 9457 problems: the one place where an error gets a status. */
import { STATUS_CODES } from "node:http";
import type { APIGatewayProxyResult } from "aws-lambda";
import { ModelFailedError } from "../agent/agent.ts";
import { type Fault, InvalidInputError, InvalidSnapshotError } from "../session/invalid.ts";
import {
  SessionTooLargeError,
  StoreThrottledError,
  StoreUnavailableError,
} from "../store/errors.ts";
import {
  MetadataTooLargeError,
  SessionBusyError,
  SessionExistsError,
  SessionNotFoundError,
  TurnIdReusedError,
  TurnInProgressError,
  TurnNotFoundError,
  TurnSupersededError,
  TurnTimeoutError,
  VersionMismatchError,
} from "../turns/errors.ts";
import { InputTooLargeError } from "../turns/request.ts";
import {
  AnswerTooLargeError,
  BodyTooLargeError,
  MethodNotAllowedError,
  RouteNotFoundError,
  UnauthorizedError,
  UnsupportedMediaTypeError,
} from "./errors.ts";
import { json } from "./responses.ts";

export interface Problem {
  readonly status: number;
  readonly code: string;
}

/** A subclass stands before its class. */
const PROBLEMS: readonly (readonly [abstract new (...args: never) => Error, number, string])[] = [
  [InvalidSnapshotError, 422, "invalid_snapshot"],
  [InvalidInputError, 400, "invalid_request"],
  [UnauthorizedError, 401, "unauthorized"],
  [RouteNotFoundError, 404, "not_found"],
  [SessionNotFoundError, 404, "not_found"],
  [TurnNotFoundError, 404, "not_found"],
  [MethodNotAllowedError, 405, "method_not_allowed"],
  [SessionExistsError, 409, "session_exists"],
  [TurnInProgressError, 409, "turn_in_progress"],
  [SessionBusyError, 409, "session_busy"],
  [TurnSupersededError, 409, "turn_superseded"],
  [VersionMismatchError, 412, "version_mismatch"],
  [InputTooLargeError, 413, "too_large"],
  [BodyTooLargeError, 413, "too_large"],
  [SessionTooLargeError, 413, "too_large"],
  [MetadataTooLargeError, 413, "too_large"],
  [AnswerTooLargeError, 413, "too_large"],
  [UnsupportedMediaTypeError, 415, "unsupported_media_type"],
  [TurnIdReusedError, 422, "idempotency_key_reused"],
  [StoreThrottledError, 503, "throttled"],
  [StoreUnavailableError, 503, "store_unavailable"],
  [ModelFailedError, 502, "model_failed"],
  [TurnTimeoutError, 504, "turn_timeout"],
];

export const problemOf = (error: unknown): Problem => {
  const known = PROBLEMS.find(([type]) => error instanceof type);
  return known ? { status: known[1], code: known[2] } : { status: 500, code: "internal" };
};

export const problemResponse = (error: unknown, requestId: string): APIGatewayProxyResult => {
  const { status, code } = problemOf(error);
  const problem = {
    type: "about:blank",
    title: STATUS_CODES[status],
    status,
    detail: detailOf(error, code),
    code,
    request_id: requestId,
    ...(error instanceof InvalidInputError ? { errors: error.faults.map(faultJson) } : {}),
  };
  return json(status, problem, { "content-type": "application/problem+json", ...headersOf(error) });
};

const AGAIN =
  "sent again with its Idempotency-Key it goes on behind what its tools have done; without one it begins anew, and its tools run again";

/** What a model or a store said of its failure may hold keys, addresses and prompts: it is for the log. */
const detailOf = (error: unknown, code: string): string => {
  if (code === "internal")
    return "something went wrong on our side; the request id finds it in the log";
  if (code === "model_failed")
    return `the model gave no usable reply; nothing of the turn is in the history; ${AGAIN}`;
  if (error instanceof TurnTimeoutError) return `${error.message}; ${AGAIN}`;
  if (error instanceof StoreUnavailableError) {
    return "the session store didn't answer, so the outcome is unknown: look, or send the request again; a turn with the same Idempotency-Key is done once";
  }
  return error instanceof Error ? clipped(error.message) : "";
};

/** A fault may name a key or a number of the caller's own, of any length. */
const clipped = (text: string): string => (text.length > 1000 ? `${text.slice(0, 1000)}…` : text);

const faultJson = ({ path, message }: Fault) => ({
  path: clipped(path),
  message: clipped(message),
});

const headersOf = (error: unknown): Record<string, string> => {
  if (error instanceof MethodNotAllowedError) return { allow: error.allowed.join(", ") };
  if (error instanceof SessionBusyError || error instanceof TurnTimeoutError) {
    return { "retry-after": String(error.retryAfterSeconds) };
  }
  return error instanceof StoreUnavailableError ? { "retry-after": "1" } : {};
};
