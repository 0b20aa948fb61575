/** The simulated table behind DynamoDB's own protocol, JSON 1.0, for the SDK's client. */
import { type HttpRequest, HttpResponse } from "@smithy/core/protocols";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { refuse, ValidationException } from "./documents.ts";
import type { Operations, Outcome } from "./operations.ts";
import type { QueryRequest } from "./query.ts";
import { fromWire, toWire, type WireItem } from "./wire.ts";

/** For the `requestHandler` of a client. */
export interface Transport {
  handle(request: HttpRequest): Promise<{ response: HttpResponse }>;
}

export const transportTo = (operations: Operations): Transport => ({
  handle: async ({ headers, body }) => {
    const operation = (headers["x-amz-target"] ?? "").split(".")[1] ?? "";
    const text = body instanceof Uint8Array ? new TextDecoder().decode(body) : String(body);
    try {
      return { response: answer(200, run(operations, operation, JSON.parse(text) as Body)) };
    } catch (error) {
      if (error instanceof ConditionFailed) {
        const seen = error.seen && { Item: toWire(error.seen) };
        return { response: refusal("ConditionalCheckFailedException", error.message, seen) };
      }
      if (!(error instanceof ValidationException)) throw error;
      return { response: refusal("ValidationException", error.message) };
    }
  },
});

interface Body extends Omit<QueryRequest, "ExpressionAttributeValues" | "ExclusiveStartKey"> {
  readonly Key?: WireItem;
  readonly Item?: WireItem;
  readonly ConditionExpression?: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeValues?: WireItem;
  readonly ExclusiveStartKey?: WireItem;
  readonly ReturnValues?: string;
  readonly ReturnValuesOnConditionCheckFailure?: string;
  /** By the name of their table. */
  readonly RequestItems?: Readonly<Record<string, BatchKeys | readonly BatchWrite[]>>;
}

interface BatchKeys {
  readonly Keys: readonly WireItem[];
  readonly ConsistentRead?: boolean;
}

interface BatchWrite {
  readonly PutRequest?: { readonly Item: WireItem };
  readonly DeleteRequest?: { readonly Key: WireItem };
}

class ConditionFailed extends Error {
  override readonly name = "ConditionFailed";
  readonly seen: Item | undefined;
  constructor(seen: Item | undefined) {
    super("The conditional request failed");
    this.seen = seen;
  }
}

const run = (operations: Operations, operation: string, body: Body): object => {
  const { Key = {}, Item = {}, ExpressionAttributeValues: values, ExclusiveStartKey: start } = body;
  const request = {
    ...body,
    Key: fromWire(Key),
    Item: fromWire(Item),
    ExpressionAttributeValues: values && fromWire(values),
    ExclusiveStartKey: start && fromWire(start),
  };
  switch (operation) {
    case "GetItem":
      return named("Item", operations.get(request));
    case "PutItem":
      return written(operations.put(request), body);
    case "UpdateItem":
      return written(operations.update(request), body);
    case "DeleteItem":
      return written(operations.delete(request), body);
    case "Query": {
      const { items, next } = operations.query(request);
      return { Items: items.map(toWire), Count: items.length, ...named("LastEvaluatedKey", next) };
    }
    case "BatchGetItem":
      return batchGet(operations, body);
    case "BatchWriteItem":
      return batchWrite(operations, body);
    default:
      return refuse(`${operation} isn't simulated`);
  }
};

const named = (name: string, item: Item | undefined): object =>
  item ? { [name]: toWire(item) } : {};

const written = (outcome: Outcome, body: Body): object => {
  if (outcome.applied)
    return body.ReturnValues === "ALL_NEW" ? named("Attributes", outcome.item) : {};
  const brings = body.ReturnValuesOnConditionCheckFailure === "ALL_OLD";
  throw new ConditionFailed(brings ? outcome.seen : undefined);
};

const batchGet = (operations: Operations, { RequestItems = {} }: Body): object => {
  const tables = Object.entries(RequestItems).map(([table, request]) => {
    if (!("Keys" in request)) return refuse("a BatchGetItem has keys");
    const items = request.Keys.flatMap((key) => {
      const { ConsistentRead = false } = request;
      const item = operations.get({ Key: fromWire(key), ConsistentRead });
      return item ? [toWire(item)] : [];
    });
    return [table, items];
  });
  return { Responses: Object.fromEntries(tables), UnprocessedKeys: {} };
};

const batchWrite = (operations: Operations, { RequestItems = {} }: Body): object => {
  for (const requests of Object.values(RequestItems)) {
    if ("Keys" in requests) return refuse("a BatchWriteItem has writes");
    for (const { PutRequest, DeleteRequest } of requests) {
      if (PutRequest) operations.put({ Item: fromWire(PutRequest.Item) });
      if (DeleteRequest) operations.delete({ Key: fromWire(DeleteRequest.Key) });
    }
  }
  return { UnprocessedItems: {} };
};

const refusal = (type: string, message: string, more: object = {}): HttpResponse =>
  answer(400, { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message, ...more });

const answer = (statusCode: number, body: object): HttpResponse =>
  new HttpResponse({
    statusCode,
    headers: { "content-type": "application/x-amz-json-1.0" },
    body: Buffer.from(JSON.stringify(body)),
  });
