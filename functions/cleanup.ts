/** Runs on a schedule. The next run finds whatever this one left; `resume` is for who can't wait for it. */
import type { Context } from "aws-lambda";
import { dynamoClient } from "../lib/store/dynamodb/client.ts";
import { dynamoSweeper, type SweepReport } from "../lib/store/dynamodb/sweep.ts";
import { config } from "./config.ts";

/** Longer than a request can take that is on its way when the time is over. */
const STOPS_BEFORE_END_MS = 10_000;

const { dynamodbEndpoint, tableName } = config;
const client = dynamoClient(dynamodbEndpoint ? { endpoint: dynamodbEndpoint } : {});
const sweeper = dynamoSweeper({ client, tableName });

export const handler = async (
  { resume }: { readonly resume?: string },
  context: Pick<Context, "getRemainingTimeInMillis">,
): Promise<SweepReport> => {
  const report = await sweeper.sweep({
    nowMs: Date.now(),
    isOver: () => context.getRemainingTimeInMillis() < STOPS_BEFORE_END_MS,
    ...(resume === undefined ? {} : { resume }),
  });
  const { resume: left, ...counts } = report;
  console.log(JSON.stringify({ message: "cleanup", ...counts, finished: left === undefined }));
  return report;
};
