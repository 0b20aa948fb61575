/**
 * A process that cleans a table up, but sends no delete after the first so many: it prints the next
 * one as it would have left, and waits to be killed. Run by kill-cleanup.test.ts.
 */
import type { HttpRequest } from "@smithy/core/protocols";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";
import { dynamoSweeper } from "../../lib/store/dynamodb/sweep.ts";

const [, , endpoint = "", tableName = "", nowMs, deletes] = process.argv;
const network = new NodeHttpHandler();
let sent = 0;
const client = dynamoClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
  requestHandler: {
    handle: async (request: HttpRequest, options = {}) => {
      const isDelete = request.headers["x-amz-target"]?.endsWith(".DeleteItem") === true;
      if (!isDelete || sent++ < Number(deletes)) return network.handle(request, options);
      const { headers, body }: { headers: object; body?: unknown } = request;
      const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body);
      console.log(`held ${JSON.stringify({ headers, body: text })}`);
      return new Promise<never>(() => {});
    },
  },
});

// Where nothing is held it lives on too, until it is killed.
setInterval(() => {}, 1000);
await dynamoSweeper({ client, tableName }).sweep({ nowMs: Number(nowMs), isOver: () => false });
console.log("swept");
