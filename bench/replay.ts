import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { marshall, unmarshall } from "@aws-sdk/util-dynamodb";
import { clientOn } from "./meter.ts";
import type { Trace } from "./trace.ts";

export interface Replay {
  readonly client: DynamoDBClient;
  /** Begins again. */
  rewind(): void;
}

/**
 * A client without a network: each request gets the answer that the trace has for it, at once. Of
 * the SDK's work only the document client's is done, between DynamoDB's types and our own.
 */
export const replay = ({ exchanges }: Trace): Replay => {
  const recorded = exchanges.map(({ operation, answer }) => ({
    operation,
    answer: marshall(answer, LENIENT),
  }));
  let left = [...recorded];
  const client = clientOn("http://replay");
  client.middlewareStack.add(
    (_next, context) =>
      async ({ input }) => {
        marshall(input, LENIENT);
        const at = left.findIndex(
          ({ operation }) => `${operation}Command` === context["commandName"],
        );
        const [next] = at < 0 ? [] : left.splice(at, 1);
        if (!next) throw new Error(`the trace has no other ${context["commandName"]}`);
        return { response: {}, output: { ...unmarshall(next.answer), $metadata: {} } };
      },
    { step: "initialize" },
  );
  const rewind = (): void => {
    left = [...recorded];
  };
  return { client, rewind };
};

const LENIENT = { removeUndefinedValues: true } as const;
