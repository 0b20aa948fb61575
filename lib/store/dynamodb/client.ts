import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";

/**
 * A client whose every operation ends within 5 s, whatever the table does: three tries of 1.5 s at
 * most, and short waits between them. The SDK's own defaults wait for an answer without bound, and
 * so until the function is killed.
 */
export const dynamoClient = (config: DynamoDBClientConfig = {}): DynamoDBClient =>
  new DynamoDBClient({
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: 1000,
      requestTimeout: 1500,
      // Without this the SDK only warns.
      throwOnRequestTimeout: true,
    },
    ...config,
  });
