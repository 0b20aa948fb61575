/** A server of OpenAI's chat completions. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { refusalBody, replyBody, replyEvents } from "./openai/bodies.ts";
import { type Asked, checkedRequest, parsedJson, Refused } from "./openai/rules.ts";
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

export interface OpenAIServer extends WireServer {
  /** The requests as they came, the refused ones too. */
  readonly sent: readonly { readonly headers: IncomingHttpHeaders; readonly body: unknown }[];
}

export const openaiServer = async (): Promise<OpenAIServer> => {
  const requests: WireRequest[] = [];
  const sent: { headers: IncomingHttpHeaders; body: unknown }[] = [];
  const answers: WireAnswer[] = [];
  const told = new Set<string>();

  const server = createServer((request, response) => {
    const serve = async (): Promise<void> => {
      const body = parsedJson(await text(request));
      sent.push({ headers: request.headers, body });
      if (`${request.method} ${request.url}` !== "POST /v1/chat/completions") {
        refuse(response, { status: 404, message: "no such route" });
        return;
      }
      const asked = checkedRequest(body, told);
      const { wantsUsage: _, ...shown } = asked;
      requests.push({ ...shown, isAborted: () => isAborted(response) });
      const answer = answers.shift();
      if (!answer) refuse(response, { status: 500, message: "there are no more answers" });
      else await give(response, answer, asked);
    };
    serve().catch((error: unknown) => {
      refuse(response, { status: error instanceof Refused ? 400 : 500, message: String(error) });
    });
  });
  const { origin, close } = await listen(server);

  const give = async (response: ServerResponse, answer: WireAnswer, asked: Asked) => {
    if ("reply" in answer) {
      const { reasoning } = answer.reply ?? {};
      for (const part of reasoning ? [reasoning.text, reasoning.signature] : []) told.add(part);
    }
    await answerWith(response, answer, formOf(response, asked));
  };

  return {
    url: `${origin}/v1`,
    requests,
    sent,
    answer: (...next) => {
      answers.length = 0;
      answers.push(...next);
    },
    close,
  };
};

const refuse = (response: ServerResponse, { status, message, headers }: Refusal): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(refusalBody(status, message));
};

const formOf = (response: ServerResponse, { streamed, wantsUsage }: Asked): Form => ({
  begin: () => {
    const type = streamed ? "text/event-stream" : "application/json";
    response.writeHead(200, { "content-type": type, "x-request-id": "r-200" });
  },
  whole: (reply) => {
    if (!streamed) return Buffer.from(replyBody(reply));
    const { told, last, behind } = replyEvents(reply, wantsUsage);
    return Buffer.from([...told, last, ...behind].join(""));
  },
  cut: (reply, at) => {
    if (!streamed) return cutBytes(Buffer.from(replyBody(reply)), at);
    const { told } = replyEvents(reply, wantsUsage);
    return Buffer.from(told.slice(0, cutCount(told.length, at)).join(""));
  },
  refuse: (refusal) => refuse(response, refusal),
});
