/** A DynamoDB client that writes down what passes through it. */
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as tick } from "node:timers/promises";
import { type ConsumedCapacity, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { HttpResponse } from "@smithy/core/protocols";
import { NodeHttpHandler } from "@smithy/node-http-handler";
import type { Exchange, Interval, Trace } from "./trace.ts";

export interface Meter {
  readonly client: DynamoDBClient;
  /** A model's thinking. It lasts until no request is on its way: real models take longer than any. */
  think(): Promise<void>;
  /** Runs `work`, and tells what passed meanwhile. */
  measure(work: () => Promise<unknown>): Promise<Trace>;
}

export const meter = (endpoint: string): Meter => {
  const network = new NodeHttpHandler();
  const pending = new Set<Promise<unknown>>();
  let exchanges: Exchange[] = [];
  let thinking: Interval[] = [];
  let bytes = 0;

  const client = clientOn(endpoint, async (request, options) => {
    const { response } = await network.handle(request, options);
    const { statusCode, headers } = response;
    const body = await buffer(response.body as Readable);
    bytes += Buffer.byteLength(request.body as string) + body.length;
    return { response: new HttpResponse({ statusCode, headers, body: Readable.from([body]) }) };
  });
  client.middlewareStack.add(
    (next, context) => async (args) => {
      const operation = String(context["commandName"]).replace(/Command$/, "");
      const startMs = performance.now();
      const sent = next({ ...args, input: { ...args.input, ReturnConsumedCapacity: "TOTAL" } });
      pending.add(sent);
      try {
        const result = await sent;
        const { $metadata: _, ...answer } = result.output;
        const endMs = performance.now();
        exchanges.push({ operation, startMs, endMs, units: unitsOf(answer), answer });
        return result;
      } finally {
        pending.delete(sent);
      }
    },
    { step: "initialize" },
  );

  return {
    client,
    think: async () => {
      const startMs = performance.now();
      do {
        await Promise.allSettled(pending);
        // What was begun just now is pending after a tick.
        await tick();
      } while (pending.size > 0);
      thinking.push({ startMs, endMs: performance.now() });
    },
    measure: async (work) => {
      [exchanges, thinking, bytes] = [[], [], 0];
      await work();
      return { exchanges: exchanges.toSorted((a, b) => a.startMs - b.startMs), thinking, bytes };
    },
  };
};

/** Each request is tried once: another try would count. */
export const clientOn = (endpoint: string, handle?: NodeHttpHandler["handle"]): DynamoDBClient =>
  new DynamoDBClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "bench", secretAccessKey: "bench" },
    maxAttempts: 1,
    ...(handle ? { requestHandler: { handle } } : {}),
  });

const unitsOf = (answer: object): number => {
  const { ConsumedCapacity: consumed = [] } = answer as Consumed;
  return [consumed].flat().reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
};

interface Consumed {
  readonly ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[];
}
