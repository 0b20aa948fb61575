/** A server of Amazon Bedrock's Converse and ConverseStream. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { replyBody, replyEvents } from "./bedrock/bodies.ts";
import { type Frame, frame } from "./bedrock/frames.ts";
import { checkedRequest, Refused } from "./bedrock/rules.ts";
import type { WireAnswer, WireRequest, WireServer } from "./wire.ts";
import {
  answerWith,
  cutBytes,
  cutCount,
  type Form,
  isAborted,
  listen,
  type Refusal,
} from "./wire-http.ts";

/** An answer in Bedrock's own terms. */
export type BedrockAnswer =
  | WireAnswer
  | { readonly kind: "json"; readonly body: unknown }
  /** A refusal of a certain kind, with more in it than a message. */
  | {
      readonly kind: "exception";
      readonly type: string;
      readonly status: number;
      readonly body: unknown;
    }
  | {
      readonly kind: "frames";
      readonly frames: readonly Frame[];
      /** What comes behind them; by default the end. */
      readonly behind?: "silence" | Buffer;
    };

export interface BedrockServer extends WireServer {
  /** The requests as they came, the refused ones too. */
  readonly sent: readonly {
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: unknown;
  }[];
  answer(...answers: readonly BedrockAnswer[]): void;
  /** How many connections there have been. */
  readonly connections: () => number;
}

export const bedrockServer = async (): Promise<BedrockServer> => {
  const requests: WireRequest[] = [];
  const sent: { path: string; headers: IncomingHttpHeaders; body: unknown }[] = [];
  const answers: BedrockAnswer[] = [];
  const told = new Set<string>();

  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const { url: path = "", headers, method } = request;
      const body = await json(request);
      sent.push({ path, headers, body });
      const [, operation] = /^\/model\/[^/]+\/(converse|converse-stream)$/.exec(path) ?? [];
      if (method !== "POST" || !operation)
        return refuse(response, { status: 404, message: "no such route" });
      if (!headers.authorization?.startsWith("AWS4-HMAC-SHA256 Credential=")) {
        return refuse(response, { status: 403, message: "it isn't signed" });
      }
      const answer = answers.shift();
      const asked = checkedRequest(body, told);
      const streamed = operation === "converse-stream";
      requests.push({ ...asked, streamed, isAborted: () => isAborted(response) });
      if (!answer) return refuse(response, { status: 500, message: "there are no more answers" });
      for (const secret of toldIn(answer)) told.add(secret);
      await give(response, answer, streamed);
    };
    serve().catch((error: unknown) => {
      refuse(response, { status: error instanceof Refused ? 400 : 500, message: String(error) });
    });
  });
  let connections = 0;
  server.on("connection", () => connections++);
  const { origin, close } = await listen(server);

  return {
    url: origin,
    requests,
    sent,
    answer: (...next) => {
      answers.length = 0;
      answers.push(...next);
    },
    connections: () => connections,
    close,
  };
};

/** Signatures and redacted reasoning, at any depth. */
const toldIn = (answer: unknown): string[] => {
  if (typeof answer !== "object" || answer === null || Buffer.isBuffer(answer)) return [];
  return Object.entries(answer).flatMap(([key, value]: [string, unknown]) => {
    const isTold = key === "signature" || key === "redactedContent";
    return isTold && typeof value === "string" ? [value] : toldIn(value);
  });
};

const give = async (
  response: ServerResponse,
  answer: BedrockAnswer,
  streamed: boolean,
): Promise<void> => {
  switch (answer.kind) {
    case "exception":
      response.writeHead(answer.status, {
        ...headersOf("application/json"),
        "x-amzn-errortype": `${answer.type}:http://internal.amazon.com/coral/`,
      });
      response.end(JSON.stringify(answer.body));
      return;
    case "json":
      formOf(response, false).begin();
      response.end(JSON.stringify(answer.body));
      return;
    case "frames":
      formOf(response, true).begin();
      for (const each of answer.frames) response.write(frame(each));
      if (answer.behind !== "silence") response.end(answer.behind);
      return;
    default:
      await answerWith(response, answer, formOf(response, streamed));
  }
};

const refuse = (response: ServerResponse, { status, message, headers }: Refusal): void => {
  const type = ERROR_TYPES[status];
  response.writeHead(status, {
    ...headersOf("application/json"),
    ...(type ? { "x-amzn-errortype": type } : {}),
    ...headers,
  });
  response.end(JSON.stringify({ message }));
};

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "ValidationException",
  401: "UnrecognizedClientException",
  403: "AccessDeniedException",
  404: "ResourceNotFoundException",
  429: "ThrottlingException",
  500: "InternalServerException",
  503: "ServiceUnavailableException",
};

const formOf = (response: ServerResponse, streamed: boolean): Form => ({
  begin: () => {
    const type = streamed ? "application/vnd.amazon.eventstream" : "application/json";
    response.writeHead(200, headersOf(type));
  },
  whole: (reply) => {
    if (!streamed) return Buffer.from(replyBody(reply));
    const { told, last, behind } = replyEvents(reply);
    return Buffer.concat([...told, last, ...behind].map(frame));
  },
  cut: (reply, at) => {
    if (!streamed) return cutBytes(Buffer.from(replyBody(reply)), at);
    const { told } = replyEvents(reply);
    return Buffer.concat(told.slice(0, cutCount(told.length, at)).map(frame));
  },
  refuse: (refusal) => refuse(response, refusal),
});

const headersOf = (type: string) => ({ "content-type": type, "x-amzn-requestid": randomUUID() });
