/** A server of Amazon Bedrock's Converse and ConverseStream. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setImmediate, setTimeout } from "node:timers/promises";
import { replyBody, replyEvents } from "./bedrock/bodies.ts";
import { type Frame, frame } from "./bedrock/frames.ts";
import { checkedRequest, Refused } from "./bedrock/rules.ts";
import type { WireAnswer, WireReply, WireRequest, WireServer } from "./wire.ts";

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
      const isAborted = (): boolean => response.closed && !response.writableFinished;
      requests.push({ ...asked, streamed, isAborted });
      if (!answer) return refuse(response, { status: 500, message: "there are no more answers" });
      for (const secret of toldIn(answer)) told.add(secret);
      await answerWith(response, answer, streamed);
    };
    serve().catch((error: unknown) => {
      refuse(response, { status: error instanceof Refused ? 400 : 500, message: String(error) });
    });
  });
  let connections = 0;
  server.on("connection", () => connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    sent,
    answer: (...next) => {
      answers.length = 0;
      answers.push(...next);
    },
    connections: () => connections,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
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

const answerWith = async (
  response: ServerResponse,
  answer: BedrockAnswer,
  streamed: boolean,
): Promise<void> => {
  switch (answer.kind) {
    case "reply": {
      await setTimeout(answer.delayMs ?? 0);
      const body = wholeBody(answer.reply, streamed);
      begin(response, streamed);
      const size = answer.pieceBytes ?? body.length;
      for (let at = 0; at < body.length && !response.closed; at += size) {
        response.write(body.subarray(at, at + size));
        await setImmediate();
      }
      response.end();
      return;
    }
    case "refusal":
      refuse(response, answer);
      return;
    case "exception":
      response.writeHead(answer.status, {
        ...headersOf("application/json"),
        "x-amzn-errortype": `${answer.type}:http://internal.amazon.com/coral/`,
      });
      response.end(JSON.stringify(answer.body));
      return;
    case "cut":
      begin(response, streamed);
      response.end(cutBody(answer.reply, streamed, answer.at));
      return;
    case "reset":
      if (answer.reply) {
        begin(response, streamed);
        const body = cutBody(answer.reply, streamed, "middle");
        await new Promise<void>((resolve) => response.write(body, () => resolve()));
        // What is on its way arrives first.
        await setTimeout(20);
      }
      response.destroy();
      return;
    case "silence":
      return;
    case "garbage":
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<html>It works!</html>\n\n");
      return;
    case "json":
      begin(response, false);
      response.end(JSON.stringify(answer.body));
      return;
    case "frames":
      begin(response, true);
      for (const each of answer.frames) response.write(frame(each));
      if (answer.behind !== "silence") response.end(answer.behind);
      return;
  }
};

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

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

const begin = (response: ServerResponse, streamed: boolean): void => {
  const type = streamed ? "application/vnd.amazon.eventstream" : "application/json";
  response.writeHead(200, headersOf(type));
};

const headersOf = (type: string) => ({ "content-type": type, "x-amzn-requestid": randomUUID() });

const wholeBody = (reply: WireReply, streamed: boolean): Buffer => {
  if (!streamed) return Buffer.from(replyBody(reply));
  const { told, last, behind } = replyEvents(reply);
  return Buffer.concat([...told, last, ...behind].map(frame));
};

/** Streams are cut between two events: each that came is whole. */
const cutBody = (reply: WireReply, streamed: boolean, at: "middle" | "end mark"): Buffer => {
  if (!streamed) {
    const body = Buffer.from(replyBody(reply));
    return body.subarray(0, at === "middle" ? body.length / 2 : -1);
  }
  const { told } = replyEvents(reply);
  const count = at === "middle" ? Math.ceil((told.length + 1) / 2) : told.length;
  return Buffer.concat(told.slice(0, count).map(frame));
};
