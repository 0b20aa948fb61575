/**
 * The local API Gateway: the very handler that Lambda gets, behind an HTTP server. It converts, keeps
 * the service's limits, and outlives whatever a handler or a client does.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { APIGatewayProxyEvent, Context } from "aws-lambda";
import { lambdaContext, ownerOf, pathOf, proxyEvent } from "./proxy-event.ts";
import { type Answer, answerOf, MAX_PAYLOAD_BYTES, messageAnswer } from "./proxy-result.ts";
import { listen } from "./server.ts";

export type ProxyHandler = (event: APIGatewayProxyEvent, context: Context) => unknown;

export type GatewayLog = Pick<Console, "info" | "error">;

export type GatewayOptions = {
  handler: ProxyHandler;
  /** 0 takes a free one. */
  port: number;
  host?: string;
  /** The function's timeout. */
  timeoutMs: number;
  log: GatewayLog;
  /** The caller of a request without the header x-dev-owner. */
  defaultOwner?: string;
  /** How long close() lets running requests finish. */
  closeGraceMs?: number;
};

export type Gateway = {
  url: string;
  close(): Promise<void>;
};

export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { handler, timeoutMs, log } = options;
  const { host = "127.0.0.1", defaultOwner = "local", closeGraceMs = 10_000 } = options;
  const running = new Set<Promise<unknown>>();

  const invoke: ProxyHandler = async (event, context) => {
    const result = callAsync(handler, event, context);
    running.add(result);
    try {
      return await within(timeoutMs, result);
    } finally {
      running.delete(result);
    }
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedMs = performance.now();
    const owner = ownerOf(request, defaultOwner);
    const answer = await answerTo({ request, owner, timeoutMs, invoke, log });
    if (answer !== null) write(response, answer);
    const status = answer?.status ?? CLIENT_GONE;
    const tookMs = Math.round(performance.now() - startedMs);
    log.info(printable(`${request.method} ${pathOf(request)} ${status} ${tookMs} ms ${owner}`));
  };

  const server = createServer((request, response) => void serve(request, response));
  const listening = await listen(server, { host, port: options.port });
  return {
    url: `http://${host}:${listening.port}`,
    async close() {
      const untilMs = performance.now() + closeGraceMs;
      await listening.close(closeGraceMs);
      // A handler whose client has left runs on, as it does on Lambda.
      await within(Math.max(0, untilMs - performance.now()), Promise.allSettled(running));
    },
  };
}

type Call = {
  request: IncomingMessage;
  owner: string;
  timeoutMs: number;
  invoke: ProxyHandler;
  log: GatewayLog;
};

/** In the log only: the client went away before its request was whole. */
const CLIENT_GONE = 499;

const TOO_LONG = messageAnswer(413, "Request Too Long");
const TIMED_OUT = messageAnswer(504, "Endpoint request timed out");
const FAILED = messageAnswer(502, "Internal server error");

/** What the service would answer; null where nobody is left to answer. */
async function answerTo({ request, owner, timeoutMs, invoke, log }: Call): Promise<Answer | null> {
  const body = await readBody(request);
  if (body === "client gone") return null;
  if (body === "too long") return TOO_LONG;

  const requestId = randomUUID();
  const event = proxyEvent({ request, body, requestId, owner, receivedMs: Date.now() });
  if (Buffer.byteLength(JSON.stringify(event)) > MAX_PAYLOAD_BYTES) return TOO_LONG;

  try {
    const result = await invoke(event, lambdaContext(requestId, performance.now() + timeoutMs));
    if (result !== OUT_OF_TIME) return answerOf(result);
    log.error(`The handler did not answer within its timeout of ${timeoutMs / 1000} s.`);
    return TIMED_OUT;
  } catch (error) {
    log.error(error);
    return FAILED;
  }
}

function readBody(request: IncomingMessage): Promise<Buffer | "too long" | "client gone"> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_PAYLOAD_BYTES) {
        chunks.push(chunk);
        return;
      }
      // The rest is taken off the wire and dropped: a client that is still sending when the
      // connection closes would get a reset in place of the answer.
      chunks.length = 0;
      resolve("too long");
    });
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", () => resolve("client gone"));
  });
}

function write(response: ServerResponse, { status, headers, body }: Answer): void {
  const isBodiless = status === 204 || status === 304;
  response.writeHead(status, isBodiless ? headers : { ...headers, "content-length": body.length });
  response.end(body);
}

const OUT_OF_TIME = Symbol("out of time");

async function within<T>(limitMs: number, promise: Promise<T>): Promise<T | typeof OUT_OF_TIME> {
  const { promise: over, resolve } = Promise.withResolvers<typeof OUT_OF_TIME>();
  const timer = setTimeout(resolve, limitMs, OUT_OF_TIME);
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

/** A handler that throws before its first await rejects like any other. */
async function callAsync(handler: ProxyHandler, event: APIGatewayProxyEvent, context: Context) {
  return handler(event, context);
}

/** One line whatever the client sent: no control, format or line-breaking characters. */
function printable(text: string): string {
  return text.replaceAll(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
