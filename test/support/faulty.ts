/** A DynamoDB client between which and the table things go wrong. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { HttpRequest, HttpResponse } from "@smithy/core/protocols";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { afterAll } from "vitest";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";

/**
 * - "answer lost": the request is applied, and its answer never comes;
 * - "not sent": the connection breaks before the request leaves;
 * - "sent twice": the network doubles it; the second answer is the one that arrives.
 */
export type Fault = "answer lost" | "not sent" | "sent twice";

export interface SentRequest {
  /** "UpdateItem", "GetItem", … */
  readonly operation: string;
  readonly body: string;
}

/** A client for which `faultOf` says, request by request, what goes wrong; and the requests it has sent. */
export const faultyClient = (
  endpoint: string,
  faultOf: (request: SentRequest, sent: readonly SentRequest[]) => Fault | undefined,
): { readonly client: DynamoDBClient; readonly sent: SentRequest[] } => {
  const network = new NodeHttpHandler();
  const sent: SentRequest[] = [];
  const client = dynamoClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
    requestHandler: {
      handle: async (request: HttpRequest, options = {}): Promise<{ response: HttpResponse }> => {
        const operation = (request.headers["x-amz-target"] ?? "").split(".")[1] ?? "";
        const body: unknown = request.body;
        const text = typeof body === "string" ? body : Buffer.from(body as Uint8Array).toString();
        const one = { operation, body: text };
        const fault = faultOf(one, sent);
        sent.push(one);
        if (fault === "not sent") throw connectionReset();
        const answer = await network.handle(request, options);
        if (!fault) return answer;
        for await (const _chunk of answer.response.body) {
          // Read to its end, so that the table has surely applied the request.
        }
        if (fault === "answer lost") throw connectionReset();
        return network.handle(request, options);
      },
    },
  });
  clients.push(client);
  return { client, sent };
};

const connectionReset = (): Error =>
  Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });

const clients: DynamoDBClient[] = [];

afterAll(() => {
  for (const client of clients.splice(0)) client.destroy();
});
