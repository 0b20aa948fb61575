/** A server of OpenAI's chat completions. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate, setTimeout } from "node:timers/promises";
import { refusalBody, replyBody, replyEvents } from "./openai/bodies.ts";
import { type Asked, checkedRequest, parsedJson, Refused } from "./openai/rules.ts";
import type { WireAnswer, WireReply, WireRequest, WireServer } from "./wire.ts";

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
      requests.push({ ...shown, isAborted: () => response.closed && !response.writableFinished });
      const answer = answers.shift();
      if (!answer) refuse(response, { status: 500, message: "there are no more answers" });
      else await give(response, answer, asked);
    };
    serve().catch((error: unknown) => {
      refuse(response, { status: error instanceof Refused ? 400 : 500, message: String(error) });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  const give = async (response: ServerResponse, answer: WireAnswer, asked: Asked) => {
    if ("reply" in answer) {
      const { reasoning } = answer.reply ?? {};
      for (const part of reasoning ? [reasoning.text, reasoning.signature] : []) told.add(part);
    }
    await answerWith(response, answer, asked);
  };

  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    sent,
    answer: (...next) => {
      answers.length = 0;
      answers.push(...next);
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
};

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const refuse = (response: ServerResponse, { status, message, headers }: Refusal): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(refusalBody(status, message));
};

const answerWith = async (
  response: ServerResponse,
  answer: WireAnswer,
  asked: Asked,
): Promise<void> => {
  switch (answer.kind) {
    case "reply": {
      await setTimeout(answer.delayMs ?? 0);
      const body = Buffer.from(wholeBody(answer.reply, asked));
      begin(response, asked);
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
    case "cut":
      begin(response, asked);
      response.end(cutBody(answer.reply, asked, answer.at));
      return;
    case "reset":
      if (answer.reply) {
        begin(response, asked);
        const body = cutBody(answer.reply, asked, "middle");
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
  }
};

const begin = (response: ServerResponse, { streamed }: Asked): void => {
  const type = streamed ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type, "x-request-id": "r-200" });
};

const wholeBody = (reply: WireReply, { streamed, wantsUsage }: Asked): string => {
  if (!streamed) return replyBody(reply);
  const { told, last, behind } = replyEvents(reply, wantsUsage);
  return [...told, last, ...behind].join("");
};

/** Streams are cut between two events: each that came is whole. */
const cutBody = (
  reply: WireReply,
  { streamed, wantsUsage }: Asked,
  at: "middle" | "end mark",
): string => {
  const body = replyBody(reply);
  if (!streamed) return body.slice(0, at === "middle" ? body.length / 2 : -1);
  const { told } = replyEvents(reply, wantsUsage);
  return told.slice(0, at === "middle" ? Math.ceil((told.length + 1) / 2) : told.length).join("");
};
