/** What is read off an API Gateway event. Everything in it comes from outside but `requestContext`. */
import type { APIGatewayProxyEvent } from "aws-lambda";
import { childPath, invalid } from "../session/invalid.ts";
import { isPlainObject, type JsonObject, kindOf, parseJson } from "../session/json.ts";
import { checkSessionId } from "../session/session.ts";
import type { IfMatch, SessionKey } from "../store/head.ts";
import { checkTurnId } from "../turns/request.ts";
import { BodyTooLargeError, UnauthorizedError, UnsupportedMediaTypeError } from "./errors.ts";

/** Below Lambda's 6 MB for a whole event, in which a body is escaped once more. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

/**
 * Who calls. An authorizer says so in its context's `owner`. Under IAM authorization it is the user
 * or the role: a role's session name changes with every machine that assumes it, so it doesn't count.
 * The users of a Cognito identity pool share one role, and are told apart by their identities.
 *
 * @throws {UnauthorizedError}
 */
export const ownerOf = ({ requestContext }: APIGatewayProxyEvent): string => {
  const owner: unknown = requestContext?.authorizer?.["owner"];
  if (typeof owner === "string" && owner !== "") return owner;
  const { cognitoIdentityId, userArn: arn } = requestContext?.identity ?? {};
  if (cognitoIdentityId) return cognitoIdentityId;
  if (!arn) throw new UnauthorizedError();
  return arn.replace(/^(arn:[\w-]+:sts::\d+:assumed-role\/[^/]+)\/.*$/, "$1");
};

/** @throws {UnauthorizedError, InvalidInputError} */
export const sessionKeyOf = (event: APIGatewayProxyEvent): SessionKey => {
  const owner = ownerOf(event);
  return {
    owner,
    sessionId: checkSessionId(
      decodePathPart(event.pathParameters?.["id"], "session_id"),
      "session_id",
    ),
  };
};

/**
 * The turn that the path names. Any text may: where it can't be a turn's id, there is no such turn.
 *
 * @throws {InvalidInputError}
 */
export const turnNameOf = ({ pathParameters }: APIGatewayProxyEvent): string =>
  decodePathPart(pathParameters?.["turn_id"], "turn_id");

const decodePathPart = (part: string | undefined, path: string): string => {
  try {
    return decodeURIComponent(part ?? "");
  } catch {
    throw invalid(path, "has a bad percent sequence");
  }
};

/**
 * The JSON object in the body; an absent or empty body is an empty one.
 *
 * @throws {InvalidInputError, UnsupportedMediaTypeError, BodyTooLargeError}
 */
export const bodyOf = (event: APIGatewayProxyEvent): JsonObject => {
  if (!event.body) return {};
  if (!JSON_TYPE.test(event.headers["content-type"] ?? "application/json")) {
    throw new UnsupportedMediaTypeError();
  }
  const bytes = Buffer.from(event.body, event.isBase64Encoded ? "base64" : "utf8");
  if (bytes.length > MAX_BODY_BYTES) throw new BodyTooLargeError(bytes.length, MAX_BODY_BYTES);
  const body = parseJson(decodeUtf8(bytes));
  if (!isPlainObject(body)) throw invalid("", `must be an object, not ${kindOf(body)}`);
  return body;
};

/** application/json and application/…+json, with no other charset than UTF-8. */
const JSON_TYPE =
  /^\s*application\/(?:[\w.!#$&^-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i;

const decodeUtf8 = (bytes: Buffer): string => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid("", "isn't valid UTF-8");
  }
};

/** Refuses what isn't known: an ignored field would be a request misunderstood. */
export const checkFieldNames = (body: JsonObject, known: readonly string[]): void => {
  for (const name of Object.keys(body)) {
    if (!known.includes(name)) {
      throw invalid(
        childPath("", name),
        `isn't a field of this request; it takes ${known.join(", ") || "none"}`,
      );
    }
  }
};

/** `Idempotency-Key`, quoted or bare. */
export const turnIdOf = ({ headers }: APIGatewayProxyEvent): string | undefined => {
  const value = headers["idempotency-key"];
  return value === undefined ? undefined : checkTurnId(unquoted(value.trim()), "Idempotency-Key");
};

/** `If-Match`: `"3.1"`, or the version alone, `"3"`. */
export const ifMatchOf = ({ headers }: APIGatewayProxyEvent): IfMatch | undefined => {
  const value = headers["if-match"];
  if (value === undefined) return undefined;
  const [, version, metadataVersion] =
    /^(\d{1,15})(?:\.(\d{1,15}))?$/.exec(unquoted(value.trim())) ?? [];
  if (version === undefined)
    throw invalid("If-Match", 'must be one version of the session, such as "3" or "3.1"');
  return {
    version: Number(version),
    ...(metadataVersion === undefined ? {} : { metadataVersion: Number(metadataVersion) }),
  };
};

const unquoted = (value: string): string => /^"(.*)"$/s.exec(value)?.[1] ?? value;

/** Whether the caller has what the ETag names (`If-None-Match`). */
export const hasCurrent = ({ headers }: APIGatewayProxyEvent, etag: string): boolean =>
  (headers["if-none-match"] ?? "")
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""))
    .some((tag) => tag === "*" || tag === etag);
