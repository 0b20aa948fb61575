import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { invalid } from "../session/invalid.ts";
import { type JsonObject, toJsonObject } from "../session/json.ts";
import { messageToJson } from "../session/message.ts";
import { checkSessionId } from "../session/session.ts";
import { formatTimestamp } from "../session/timestamp.ts";
import type { Head } from "../store/store.ts";
import { restoreSession } from "../turns/head.ts";
import { MAX_PAGE_LIMIT, type PageRequest, pageOfMessages } from "../turns/messages.ts";
import { checkInput, checkOnBusy, checkSupersedes } from "../turns/request.ts";
import type { TurnResult } from "../turns/result.ts";
import type { Sessions } from "../turns/sessions.ts";
import type { Turns } from "../turns/turns.ts";
import {
  bodyOf,
  checkFieldNames,
  hasCurrent,
  ifMatchOf,
  ownerOf,
  sessionKeyOf,
  turnIdOf,
} from "./request.ts";
import { empty, json } from "./responses.ts";

export interface RoutesOptions {
  readonly turns: Turns;
  readonly sessions: Sessions;
  /** What `/ping` answers with. */
  readonly version: string;
  readonly nowMs: () => number;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly handler: (
    event: APIGatewayProxyEvent,
    context: Context,
  ) => Promise<APIGatewayProxyResult>;
}

export const routes = ({ turns, sessions, version, nowMs }: RoutesOptions): Route[] => [
  {
    method: "GET",
    path: "/ping",
    handler: async () => json(200, { status: "ok", version }),
  },
  {
    method: "POST",
    path: "/v1/sessions",
    handler: async (event) => {
      const owner = ownerOf(event);
      const body = bodyOf(event);
      checkFieldNames(body, ["session_id", "metadata"]);
      const head = await sessions.create({
        owner,
        ...(body["session_id"] === undefined
          ? {}
          : { sessionId: checkSessionId(body["session_id"], "session_id") }),
        ...(body["metadata"] === undefined
          ? {}
          : { metadata: toJsonObject(body["metadata"], "metadata") }),
      });
      const location = `${pathOf(event)}/${head.sessionId}`;
      return json(201, headJson(head, nowMs()), { location, etag: etagOf(head) });
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}",
    handler: async (event) => {
      const head = await sessions.read(sessionKeyOf(event));
      const etag = etagOf(head);
      return hasCurrent(event, etag)
        ? empty(304, { etag })
        : json(200, headJson(head, nowMs()), { etag });
    },
  },
  {
    method: "DELETE",
    path: "/v1/sessions/{id}",
    handler: async (event) => {
      await sessions.delete(sessionKeyOf(event), ifMatchOf(event));
      return empty(204);
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/messages",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const request = pageRequestOf(event);
      const { data, nextCursor = null } = pageOfMessages(await sessions.read(key), request);
      return json(200, { data, has_more: nextCursor !== null, next_cursor: nextCursor });
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/snapshot",
    handler: async (event) => {
      const head = await sessions.read(sessionKeyOf(event));
      return json(200, restoreSession(head).snapshot(), { etag: etagOf(head) });
    },
  },
  {
    method: "PUT",
    path: "/v1/sessions/{id}/snapshot",
    handler: async (event) => {
      const { owner, sessionId } = sessionKeyOf(event);
      const head = await sessions.import({ owner, sessionId }, bodyOf(event));
      const location = pathOf(event).replace(/\/snapshot$/, "");
      return json(201, headJson(head, nowMs()), { location, etag: etagOf(head) });
    },
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/turns",
    handler: async (event, context) => {
      const key = sessionKeyOf(event);
      const turnId = turnIdOf(event);
      const ifMatch = ifMatchOf(event);
      const result = await turns.run({
        ...key,
        ...turnBody(bodyOf(event)),
        ...(turnId === undefined ? {} : { turnId }),
        ...(ifMatch === undefined ? {} : { ifMatch }),
        deadlineMs: nowMs() + context.getRemainingTimeInMillis(),
      });
      return json(200, turnJson(result));
    },
  },
];

const turnBody = (body: JsonObject) => {
  checkFieldNames(body, ["input", "on_busy", "supersedes"]);
  const { input, on_busy, supersedes } = body;
  if (input === undefined) throw invalid("input", "is missing");
  return {
    input: checkInput(input, "input"),
    ...(on_busy === undefined ? {} : { onBusy: checkOnBusy(on_busy, "on_busy") }),
    ...(supersedes === undefined ? {} : { supersedes: checkSupersedes(supersedes, "supersedes") }),
  };
};

const pageRequestOf = ({ queryStringParameters }: APIGatewayProxyEvent): PageRequest => {
  const { limit, cursor, order } = queryStringParameters ?? {};
  if (
    limit !== undefined &&
    !(/^\d{1,4}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= MAX_PAGE_LIMIT)
  ) {
    throw invalid("limit", `must be a whole number from 1 to ${MAX_PAGE_LIMIT}`);
  }
  if (order !== undefined && order !== "asc" && order !== "desc")
    throw invalid("order", "must be asc or desc");
  return {
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(cursor === undefined ? {} : { cursor }),
    ...(order === undefined ? {} : { order }),
  };
};

/** As the caller sees it: with the stage, or the base path of a custom domain. */
const pathOf = (event: APIGatewayProxyEvent): string =>
  (event.requestContext.path ?? event.path).replace(/\/+$/, "");

const etagOf = ({ version, metadataVersion }: Head): string => `"${version}.${metadataVersion}"`;

const headJson = (head: Head, nowMs: number) => ({
  session_id: head.sessionId,
  created_at: head.createdAt,
  updated_at: head.updatedAt,
  expires_at: formatTimestamp(head.expiresAtSeconds * 1000),
  version: head.version,
  metadata: head.metadata,
  message_count: head.counts.messages,
  turn_count: head.counts.turns,
  size_bytes: head.counts.bytes,
  turn: openTurnJson(head, nowMs),
});

const openTurnJson = ({ open, claim }: Head, nowMs: number) =>
  open
    ? {
        turn_id: open.turnId,
        status: claim && claim.untilMs > nowMs ? "running" : "interrupted",
        input: open.input,
      }
    : null;

const turnJson = (result: TurnResult) => ({
  turn_id: result.turnId,
  session_id: result.sessionId,
  version: result.version,
  final: result.final,
  finish: result.finish,
  steps: result.steps,
  messages: result.messages.map(messageToJson),
  usage: { input_tokens: result.usage.inputTokens, output_tokens: result.usage.outputTokens },
  replayed: result.replayed,
});
