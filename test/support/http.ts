/** The HTTP handler as Lambda calls it: a REST API's proxy event in, a checked answer out. */
import { validateHeaderName, validateHeaderValue } from "node:http";
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import { Agent, type AgentOptions } from "../../lib/agent/agent.ts";
import { type HttpHandler, httpHandler } from "../../lib/http/handler.ts";
import { isPlainObject } from "../../lib/session/json.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { type SettableClock, settableClock } from "./clock.ts";
import { NOW_MS } from "./heads.ts";
import { type ScriptedModel, type ScriptedReply, scriptedModel } from "./models.ts";

export interface Service {
  readonly handler: HttpHandler;
  readonly model: ScriptedModel;
  readonly clock: SettableClock;
  /** What the service reported, in order. */
  readonly errors: {
    readonly error: unknown;
    readonly status: number;
    readonly requestId: string;
  }[];
}

export interface ServiceOptions extends Omit<AgentOptions, "model"> {
  /** What the model says; without it, "ok" to everything. */
  readonly replies?: readonly ScriptedReply[];
  readonly provider?: string;
  readonly store?: SessionStore;
  readonly lifetimeSeconds?: number;
  readonly maxInputBytes?: number;
}

/** A service of its own store and clock, which stands at NOW_MS. */
export const service = (options: ServiceOptions = {}): Service => {
  const { store = memorySessionStore(), lifetimeSeconds = 3600, maxInputBytes = 1000 } = options;
  const model = scriptedModel(
    options.replies ?? Array.from({ length: 50 }, () => assistantMessage("ok")),
    options.provider,
  );
  const clock = settableClock(NOW_MS);
  const errors: Service["errors"] = [];
  const handler = httpHandler({
    turns: createTurns({
      agent: new Agent({ ...options, model }),
      store,
      clock,
      lifetimeSeconds,
      maxInputBytes,
    }),
    sessions: createSessions({ store, clock, lifetimeSeconds }),
    version: "1.2.3",
    nowMs: clock.nowMs,
    onError: (error, answer) => errors.push({ error, ...answer }),
  });
  return { handler, model, clock, errors };
};

export interface Sent {
  readonly method: string;
  /** As on the wire, percent-encoded, without stage and query. */
  readonly path: string;
  readonly query?: Record<string, string>;
  readonly headers?: Record<string, string> | null;
  /** Text goes as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly base64?: boolean;
  /** "ann" by default; null for a caller without any identity. */
  readonly owner?: string | null;
  /** In place of an authorizer: what IAM authorization tells. */
  readonly identity?: { readonly userArn?: string; readonly cognitoIdentityId?: string };
  /** Of a custom domain. */
  readonly basePath?: string;
  readonly remainingMs?: number;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body's object; empty where there is no body. */
  readonly json: Record<string, unknown>;
}

export const call = (handler: HttpHandler, sent: Sent): Promise<Reply> =>
  invoke(handler, proxyEvent(sent), sent.remainingMs);

/** For events unlike those of `proxyEvent`. Every answer is checked to be one that API Gateway can send (H11). */
export const invoke = async (
  handler: HttpHandler,
  event: object,
  remainingMs = 28_000,
): Promise<Reply> =>
  // Through JSON, as everything comes to Lambda.
  checkedReply(
    await handler(
      JSON.parse(JSON.stringify(event)) as APIGatewayProxyEvent,
      lambdaContext(remainingMs),
    ),
  );

export const REQUEST_ID = "request-1";

/** The resources are those of serverless.yml. */
export const proxyEvent = (sent: Sent) => {
  const { method, path, query, headers = {}, body, base64 = false, basePath } = sent;
  const resource = /^\/v1\/./.test(path) ? "/v1/{proxy+}" : path;
  return {
    resource,
    path: `${basePath ?? ""}${path}`,
    httpMethod: method,
    headers,
    multiValueHeaders: headers && multi(headers),
    queryStringParameters: query ?? null,
    multiValueQueryStringParameters: query ? multi(query) : null,
    pathParameters: resource === path ? null : { proxy: path.slice("/v1/".length) },
    stageVariables: null,
    requestContext: requestContext(sent, resource),
    body:
      body === undefined || body === null || typeof body === "string"
        ? (body ?? null)
        : JSON.stringify(body),
    isBase64Encoded: base64,
  };
};

const requestContext = (sent: Sent, resource: string): APIGatewayProxyEvent["requestContext"] => {
  const owner = sent.owner === undefined && !sent.identity ? "ann" : sent.owner;
  return {
    accountId: "123456789012",
    apiId: "api",
    authorizer: owner === undefined || owner === null ? null : { owner },
    httpMethod: sent.method,
    identity: {
      accessKey: null,
      accountId: null,
      apiKey: null,
      apiKeyId: null,
      caller: null,
      clientCert: null,
      cognitoAuthenticationProvider: null,
      cognitoAuthenticationType: null,
      cognitoIdentityId: sent.identity?.cognitoIdentityId ?? null,
      cognitoIdentityPoolId: null,
      principalOrgId: null,
      sourceIp: "192.0.2.1",
      user: null,
      userAgent: null,
      userArn: sent.identity?.userArn ?? null,
    },
    path: `${sent.basePath ?? "/dev"}${sent.path}`,
    protocol: "HTTP/1.1",
    requestId: REQUEST_ID,
    requestTimeEpoch: NOW_MS,
    resourceId: "resource",
    resourcePath: resource,
    stage: "dev",
  };
};

const multi = (single: Record<string, string>): Record<string, string[]> =>
  Object.fromEntries(Object.entries(single).map(([name, value]) => [name, [value]]));

const lambdaContext = (remainingMs: number): Context => ({
  callbackWaitsForEmptyEventLoop: true,
  functionName: "http",
  functionVersion: "$LATEST",
  invokedFunctionArn: "arn:aws:lambda:us-east-1:123456789012:function:http",
  memoryLimitInMB: "512",
  awsRequestId: "invocation-1",
  logGroupName: "/aws/lambda/http",
  logStreamName: "stream",
  getRemainingTimeInMillis: () => remainingMs,
  ...CALLBACKS,
});

/** Still in the type, but no longer in the runtime. */
const CALLBACKS = { done: noCallbacks, fail: noCallbacks, succeed: noCallbacks };

function noCallbacks(): never {
  throw new Error("Lambda's Node 24 knows no callbacks");
}

/** Lambda's limit for an answer as JSON. */
export const MAX_ANSWER_BYTES = 6 * 1024 * 1024;

/** @throws where API Gateway couldn't send the answer, or it breaks the form that every answer has */
const checkedReply = (result: unknown): Reply => {
  const must = (holds: boolean, what: string): void => {
    if (!holds)
      throw new Error(`${what}: ${(JSON.stringify(result) ?? "undefined").slice(0, 500)}`);
  };
  if (!isPlainObject(result)) throw new Error("the answer must be an object");
  const { statusCode: status, headers, body: text, ...others } = result;
  must(
    Buffer.byteLength(JSON.stringify(result)) <= MAX_ANSWER_BYTES,
    "the answer must be at most 6 MB",
  );
  must(Object.keys(others).length === 0, "the answer must have no other fields");
  if (typeof status !== "number" || typeof text !== "string" || !isPlainObject(headers)) {
    throw new Error("the answer must have a numeric status, headers and a body of text");
  }
  must(
    Number.isInteger(status) && status >= 200 && status <= 599,
    "the status must be an HTTP status",
  );
  const lines: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string") throw new Error(`header ${name} must be a string`);
    validateHeaderName(name);
    validateHeaderValue(name, value);
    must(name === name.toLowerCase(), "header names must be in lower case");
    lines[name] = value;
  }
  must(lines["cache-control"] === "private, no-cache", "nothing shared may cache the answer");
  must(lines["x-content-type-options"] === "nosniff", "nobody may guess the answer's type");
  if (status === 204 || status === 304) {
    must(text === "" && lines["content-type"] === undefined, "this status has no body");
    return { status, headers: lines, text, json: {} };
  }
  const json: unknown = JSON.parse(text);
  if (!isPlainObject(json)) throw new Error("the body must be a JSON object");
  if (status < 400) must(lines["content-type"] === "application/json", "the body must be JSON");
  else checkProblem(json, lines, status);
  return { status, headers: lines, text, json };
};

/** The codes of the API, by status. */
const CODES: Readonly<Record<number, readonly string[]>> = {
  400: ["invalid_request"],
  401: ["unauthorized"],
  404: ["not_found"],
  405: ["method_not_allowed"],
  409: ["session_exists", "session_busy", "turn_in_progress", "turn_superseded"],
  412: ["version_mismatch"],
  413: ["too_large"],
  415: ["unsupported_media_type"],
  422: ["idempotency_key_reused", "invalid_snapshot"],
  500: ["internal"],
  502: ["model_failed"],
  503: ["throttled", "store_unavailable"],
  504: ["turn_timeout"],
};

const checkProblem = (
  json: Record<string, unknown>,
  headers: Record<string, string>,
  statusCode: number,
): void => {
  const { type, title, status, detail, code, request_id, errors, ...others } = json;
  const hasText = [type, title, detail, code, request_id].every(
    (text) => typeof text === "string" && text !== "",
  );
  const faults: unknown = errors ?? [];
  const holds =
    hasText &&
    status === statusCode &&
    headers["content-type"] === "application/problem+json" &&
    (CODES[statusCode] ?? []).includes(String(code)) &&
    Object.keys(others).length === 0 &&
    (errors !== undefined) === String(code).startsWith("invalid_") &&
    Array.isArray(faults) &&
    faults.every((fault) => isPlainObject(fault) && Object.keys(fault).join() === "path,message");
  if (!holds) throw new Error(`the problem is malformed: ${JSON.stringify(json)}`);
};
