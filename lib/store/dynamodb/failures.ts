import {
  ConditionalCheckFailedException,
  DynamoDBServiceException,
} from "@aws-sdk/client-dynamodb";
import { unmarshall, type unmarshallOptions } from "@aws-sdk/util-dynamodb";
import {
  SessionTooLargeError,
  StoreRefusedError,
  StoreThrottledError,
  StoreUnavailableError,
} from "../errors.ts";
import type { Item } from "./table.ts";

/**
 * The item that a failed condition came with. It is undefined where there is none, and where the
 * engine doesn't send it: a caller has to read then.
 *
 * @throws what `translate` does, for every other error
 */
export const refusedItem = (error: unknown): Item | undefined => {
  if (!(error instanceof ConditionalCheckFailedException)) return translate(error);
  return error.Item && unmarshall(error.Item, numbersAsWritten());
};

/**
 * All numbers of an item are whole and safe; one that isn't stays text, and so is found out when it
 * is decoded. Made anew for each use, since the SDK writes into its options.
 */
export const numbersAsWritten = (): unmarshallOptions => ({
  wrapNumbers: (text: string): unknown =>
    Number.isSafeInteger(Number(text)) ? Number(text) : text,
});

/** Rethrows an SDK error in our own terms. */
export const translate = (error: unknown): never => {
  if (!(error instanceof Error)) throw error;
  if (/Throttl|ProvisionedThroughputExceeded|RequestLimitExceeded/.test(error.name)) {
    throw new StoreThrottledError("DynamoDB throttles requests to the session table", {
      cause: error,
    });
  }
  if (error.name === "ValidationException" && error.message.includes("Item size")) {
    throw new SessionTooLargeError("an item would be larger than DynamoDB takes", { cause: error });
  }
  const isAnswer = error instanceof DynamoDBServiceException;
  const isRefusal = isAnswer && (error.$metadata.httpStatusCode ?? 500) < 500;
  if (isRefusal || error.name === "CredentialsProviderError") {
    const why = `${error.name}: ${error.message}`;
    throw new StoreRefusedError(`DynamoDB refuses a request to the session table: ${why}`, {
      cause: error,
    });
  }
  throw new StoreUnavailableError("DynamoDB didn't answer", { cause: error });
};
