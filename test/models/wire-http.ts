/** What the wire servers of all protocols do alike. */
import { once } from "node:events";
import type { Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import type { WireAnswer, WireReply } from "./wire.ts";

export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** How one request's answer looks in a protocol. */
export interface Form {
  /** Status and headers of an answer that isn't a refusal. */
  begin(): void;
  whole(reply: WireReply): Buffer;
  /** Streams are cut between two events: each that came is whole. */
  cut(reply: WireReply, at: "middle" | "end mark"): Buffer;
  refuse(refusal: Refusal): void;
}

export const answerWith = async (
  response: ServerResponse,
  answer: WireAnswer,
  form: Form,
): Promise<void> => {
  switch (answer.kind) {
    case "reply": {
      await setTimeout(answer.delayMs ?? 0);
      const body = form.whole(answer.reply);
      form.begin();
      const size = answer.pieceBytes ?? body.length;
      for (let at = 0; at < body.length && !response.closed; at += size) {
        response.write(body.subarray(at, at + size));
        await setImmediate();
      }
      response.end();
      return;
    }
    case "refusal":
      form.refuse(answer);
      return;
    case "cut":
      form.begin();
      response.end(form.cut(answer.reply, answer.at));
      return;
    case "reset":
      if (answer.reply) {
        form.begin();
        const body = form.cut(answer.reply, "middle");
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

/** How many of a stream's pieces come before it is cut. */
export const cutCount = (pieces: number, at: "middle" | "end mark"): number =>
  at === "middle" ? Math.ceil((pieces + 1) / 2) : pieces;

/** A body that isn't streamed, cut. */
export const cutBytes = (body: Buffer, at: "middle" | "end mark"): Buffer =>
  body.subarray(0, at === "middle" ? body.length / 2 : -1);

/** Whether the client let go of it. */
export const isAborted = (response: ServerResponse): boolean =>
  response.closed && !response.writableFinished;

/** On a free port of 127.0.0.1. */
export const listen = async (
  server: Server,
): Promise<{ origin: string; close(): Promise<void> }> => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
};
