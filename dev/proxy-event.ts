/**
 * An HTTP request as a function behind a REST API gets it. As there: the path keeps its
 * percent-encoding, the query is decoded, names keep their case, the last of several values counts.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { APIGatewayProxyEvent, Context } from "aws-lambda";

const OWNER_HEADER = "x-dev-owner";
const STAGE = "local";
const FUNCTION_NAME = "oneturn-local-http";

export type Received = {
  request: IncomingMessage;
  body: Buffer;
  requestId: string;
  /** Who is calling, in place of an authorizer. */
  owner: string;
  receivedMs: number;
};

export function ownerOf(request: IncomingMessage, defaultOwner: string): string {
  return request.headersDistinct[OWNER_HEADER]?.[0] || defaultOwner;
}

export function pathOf(request: IncomingMessage): string {
  return splitTarget(request).path;
}

export function proxyEvent({
  request,
  body,
  requestId,
  owner,
  receivedMs,
}: Received): APIGatewayProxyEvent {
  const { path, query } = splitTarget(request);
  const httpMethod = request.method ?? "GET";
  const headers = headersOf(request);
  const parameters = query === "" ? null : parametersOf(query);
  const proxy = path.slice(1);
  const resource = proxy === "" ? "/" : "/{proxy+}";
  const isText = isUtf8(body);
  return {
    resource,
    path,
    httpMethod,
    headers: lastOfEach(headers),
    multiValueHeaders: headers,
    queryStringParameters: parameters && lastOfEach(parameters),
    multiValueQueryStringParameters: parameters,
    pathParameters: proxy === "" ? null : { proxy },
    stageVariables: null,
    requestContext: {
      accountId: "000000000000",
      apiId: STAGE,
      authorizer: { owner },
      protocol: `HTTP/${request.httpVersion}`,
      httpMethod,
      identity: {
        accessKey: null,
        accountId: null,
        apiKey: null,
        apiKeyId: null,
        caller: null,
        clientCert: null,
        cognitoAuthenticationProvider: null,
        cognitoAuthenticationType: null,
        cognitoIdentityId: null,
        cognitoIdentityPoolId: null,
        principalOrgId: null,
        sourceIp: request.socket.remoteAddress ?? "127.0.0.1",
        user: null,
        userAgent: request.headers["user-agent"] ?? null,
        userArn: null,
      },
      path,
      stage: STAGE,
      requestId,
      requestTimeEpoch: receivedMs,
      resourceId: STAGE,
      resourcePath: resource,
    },
    body: body.length === 0 ? null : body.toString(isText ? "utf8" : "base64"),
    isBase64Encoded: !isText,
  };
}

/** `deadlineMs` is on the clock of `performance.now()`, which no change of the date moves. */
export function lambdaContext(awsRequestId: string, deadlineMs: number): Context {
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName: FUNCTION_NAME,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:us-east-1:000000000000:function:${FUNCTION_NAME}`,
    memoryLimitInMB: "512",
    awsRequestId,
    logGroupName: `/aws/lambda/${FUNCTION_NAME}`,
    logStreamName: STAGE,
    getRemainingTimeInMillis: () => Math.max(0, Math.round(deadlineMs - performance.now())),
    ...CALLBACKS,
  };
}

/** Still in the type, but no longer in the runtime. */
const CALLBACKS = { done: refuseCallbacks, fail: refuseCallbacks, succeed: refuseCallbacks };

function refuseCallbacks(): never {
  throw new Error("Lambda's Node 24 knows no callbacks: return a promise.");
}

function splitTarget(request: IncomingMessage): { path: string; query: string } {
  // A client may send the whole URL as the target, as to a proxy.
  const target = (request.url ?? "/").replace(/^https?:\/\/[^/?]*/i, "");
  const [, path = "", query = ""] = /^([^?]*)\??(.*)$/s.exec(target) ?? [];
  return { path: path || "/", query };
}

function headersOf(request: IncomingMessage): Record<string, string[]> {
  const found = new Map<string, { name: string; values: string[] }>();
  const raw = request.rawHeaders;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name = "", value = ""] = raw.slice(index, index + 2);
    // The functions never see who the development server took the caller for.
    if (name.toLowerCase() === OWNER_HEADER) continue;
    const header = found.get(name.toLowerCase()) ?? { name, values: [] };
    header.values.push(value);
    found.set(name.toLowerCase(), header);
  }
  return Object.fromEntries([...found.values()].map(({ name, values }) => [name, values]));
}

function parametersOf(query: string): Record<string, string[]> | null {
  const found = new Map<string, string[]>();
  for (const pair of query.split("&")) {
    if (pair === "") continue;
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(pair) ?? [];
    const values = found.get(decoded(name)) ?? [];
    values.push(decoded(value));
    found.set(decoded(name), values);
  }
  return found.size === 0 ? null : Object.fromEntries(found);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    // Whether a bad percent sequence is an error is for the function to say.
    return text;
  }
}

function lastOfEach(multi: Record<string, string[]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(multi).map(([name, values]) => [name, values.at(-1) ?? ""]),
  );
}
