import type { APIGatewayProxyResult } from "aws-lambda";

type Headers = Record<string, string>;

/** Every answer is made here. */
export const json = (
  statusCode: number,
  body: unknown,
  headers: Headers = {},
): APIGatewayProxyResult => ({
  statusCode,
  headers: { ...COMMON, "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

export const empty = (statusCode: number, headers: Headers = {}): APIGatewayProxyResult => ({
  statusCode,
  headers: { ...COMMON, ...headers },
  body: "",
});

const COMMON: Headers = {
  "cache-control": "private, no-cache",
  "x-content-type-options": "nosniff",
};

/** Of an answer's body, escaped once more as it is inside Lambda's own answer, which takes 6 MB. */
export const MAX_ANSWER_BYTES = 5_500_000;

export { pageBytes as answerBytes } from "../turns/pages.ts";
