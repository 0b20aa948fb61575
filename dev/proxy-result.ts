/** What a function returned, as an HTTP answer; refused where a REST API would refuse it. */
import { validateHeaderName, validateHeaderValue } from "node:http";

export type Answer = {
  status: number;
  headers: Record<string, string[]>;
  body: Buffer;
};

/** The caller gets a 502; the message is for whoever writes the function. */
export class MalformedResultError extends Error {
  override name = "MalformedResultError";
}

/** Lambda's limit for an event and for a result, each as JSON. */
export const MAX_PAYLOAD_BYTES = 6 * 1024 * 1024;

export function answerOf(result: unknown): Answer {
  const json = JSON.stringify(result) ?? "null";
  if (Buffer.byteLength(json) > MAX_PAYLOAD_BYTES) {
    throw new MalformedResultError("The result is over 6 MB, the most that Lambda passes on.");
  }
  // What the service sees is the JSON, without anything that JSON can't say.
  const fields = entriesOf(JSON.parse(json), "The result");
  const status = fields.get("statusCode");
  if (!isStatus(status)) {
    throw new MalformedResultError(
      `statusCode must be a whole number from 200 to 599, not ${show(status)}.`,
    );
  }
  const body = fields.get("body") ?? "";
  if (typeof body !== "string") {
    throw new MalformedResultError(`body must be a string, not ${show(body)}.`);
  }
  return {
    status,
    headers: headersOf(fields.get("headers"), fields.get("multiValueHeaders")),
    body: Buffer.from(body, fields.get("isBase64Encoded") === true ? "base64" : "utf8"),
  };
}

export function messageAnswer(status: number, message: string): Answer {
  return {
    status,
    headers: { "content-type": ["application/json"] },
    body: Buffer.from(JSON.stringify({ message })),
  };
}

/** These describe the connection, which is the server's own affair. */
const CONNECTION_HEADERS = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

function headersOf(single: unknown, multi: unknown): Record<string, string[]> {
  const headers = new Map<string, string[]>([["content-type", ["application/json"]]]);
  for (const [name, value] of entriesOf(single ?? {}, "headers")) {
    headers.set(name.toLowerCase(), [headerValue(name, value)]);
  }
  // A name in both has only the values given here.
  for (const [name, values] of entriesOf(multi ?? {}, "multiValueHeaders")) {
    if (!Array.isArray(values)) {
      throw new MalformedResultError(
        `multiValueHeaders, ${name}: must be a list, not ${show(values)}.`,
      );
    }
    headers.set(
      name.toLowerCase(),
      values.map((value: unknown) => headerValue(name, value)),
    );
  }
  return Object.fromEntries([...headers].filter(([name]) => !CONNECTION_HEADERS.has(name)));
}

function headerValue(name: string, value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") {
    throw new MalformedResultError(`Header ${name} must be a string, not ${show(value)}.`);
  }
  try {
    validateHeaderName(name);
    validateHeaderValue(name, String(value));
  } catch (error) {
    throw new MalformedResultError(`Header ${name} can't be sent.`, { cause: error });
  }
  return String(value);
}

function entriesOf(value: unknown, what: string): Map<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new MalformedResultError(`${what} must be an object, not ${show(value)}.`);
  }
  return new Map(Object.entries(value));
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? "undefined").slice(0, 100);
}
