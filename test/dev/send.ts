/** One HTTP request, sent to the letter: fetch() would tidy its path and its headers. */
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from "node:http";
import { buffer } from "node:stream/consumers";

export type Sent = {
  method?: string;
  /** Name, value, name, value. */
  headers?: string[];
  body?: string | Buffer;
};

export type Reply = {
  status: number;
  headers: IncomingHttpHeaders;
  /** Each value of the headers that were sent more than once. */
  headersDistinct: NodeJS.Dict<string[]>;
  bytes: Buffer;
  text: string;
};

export async function send(url: string, path: string, sent: Sent = {}): Promise<Reply> {
  const { hostname, port, host } = new URL(url);
  const { method = "GET", headers = [], body } = sent;
  const length = body === undefined ? [] : ["Content-Length", String(Buffer.byteLength(body))];
  const outgoing = httpRequest({
    hostname,
    port,
    path,
    method,
    headers: ["Host", host, ...length, ...headers],
    agent: false,
  });
  const response = responseTo(outgoing);
  outgoing.end(body);
  const incoming = await response;
  const bytes = await buffer(incoming);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    headersDistinct: incoming.headersDistinct,
    bytes,
    text: bytes.toString(),
  };
}

function responseTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.once("response", resolve);
    outgoing.once("error", reject);
  });
}
