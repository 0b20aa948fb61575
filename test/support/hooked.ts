/** A DynamoDB client whose requests a test sees before they leave, and may hold, fail or answer itself. */
import { Readable } from "node:stream";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type HttpRequest, HttpResponse } from "@smithy/core/protocols";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll } from "vitest";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";
import type { SentRequest } from "./faulty.ts";

/**
 * What it returns is the answer, and the table never sees the request. `send` sends the request, for
 * who wants it applied first.
 */
export type Hook = (
  request: SentRequest,
  send: () => Promise<unknown>,
) => Promise<object | undefined>;

export interface Hooked {
  readonly client: DynamoDBClient;
  /** How many requests were sent, and how many of them haven't ended. */
  readonly requests: { sent: number; open: number };
}

export const hookedClient = (endpoint: string, hook: Hook): Hooked => {
  const network = new NodeHttpHandler();
  const requests = { sent: 0, open: 0 };
  const client = dynamoClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    maxAttempts: 1,
    requestHandler: {
      handle: async (request: HttpRequest, options = {}) => {
        const operation = (request.headers["x-amz-target"] ?? "").split(".")[1] ?? "";
        const body =
          request.body instanceof Uint8Array
            ? new TextDecoder().decode(request.body)
            : String(request.body);
        requests.sent++;
        requests.open++;
        try {
          const answer = await hook({ operation, body }, () => network.handle(request, options));
          return answer
            ? { response: jsonResponse(answer) }
            : await network.handle(request, options);
        } finally {
          requests.open--;
        }
      },
    },
  });
  clients.push(client);
  return { client, requests };
};

const jsonResponse = (answer: object): HttpResponse =>
  new HttpResponse({
    statusCode: 200,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: Readable.from([JSON.stringify(answer)]),
  });

const clients: DynamoDBClient[] = [];

afterAll(() => {
  for (const client of clients.splice(0)) client.destroy();
});
