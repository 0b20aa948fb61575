import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { invalid } from "../session/invalid.ts";
import { type JsonObject, toJsonObject } from "../session/json.ts";
import { checkSessionId } from "../session/session.ts";
import { MAX_LIST_LIMIT } from "../turns/list.ts";
import { MAX_PAGE_LIMIT, type PageRequest } from "../turns/pages.ts";
import { checkInput, checkOnBusy, checkTurnName } from "../turns/request.ts";
import type { Sessions } from "../turns/sessions.ts";
import type { Turns } from "../turns/turns.ts";
import { AnswerTooLargeError } from "./errors.ts";
import { etagOf, foundTurnJson, headJson, pageJson, turnJson } from "./json.ts";
import {
  bodyOf,
  checkFieldNames,
  hasCurrent,
  ifMatchOf,
  ownerOf,
  sessionKeyOf,
  turnIdOf,
  turnNameOf,
} from "./request.ts";
import { answerBytes, empty, json, MAX_ANSWER_BYTES } from "./responses.ts";

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
    path: "/v1/sessions",
    handler: async (event) => {
      const owner = ownerOf(event);
      const { limit, cursor } = pageRequestOf(event, MAX_LIST_LIMIT);
      const page = await sessions.list(owner, {
        ...(limit === undefined ? {} : { limit }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      const now = nowMs();
      return json(200, pageJson({ ...page, data: page.data.map((head) => headJson(head, now)) }));
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
    method: "PATCH",
    path: "/v1/sessions/{id}",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const ifMatch = ifMatchOf(event);
      const body = bodyOf(event);
      checkFieldNames(body, ["metadata"]);
      if (body["metadata"] === undefined) throw invalid("metadata", "is missing");
      const patch = toJsonObject(body["metadata"], "metadata");
      const head = await sessions.patchMetadata(key, patch, ifMatch);
      return json(200, headJson(head, nowMs()), { etag: etagOf(head) });
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/messages",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const request = pageRequestOf(event);
      return json(200, pageJson(await sessions.messages(await sessions.read(key), request)));
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/turns",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const request = pageRequestOf(event);
      return json(200, pageJson(await sessions.turns(await sessions.read(key), request)));
    },
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/fork",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const body = bodyOf(event);
      checkFieldNames(body, ["at_turn", "session_id"]);
      const { at_turn, session_id } = body;
      const head = await sessions.fork(key, {
        ...(at_turn === undefined ? {} : { atTurn: checkTurnName(at_turn, "at_turn") }),
        ...(session_id === undefined
          ? {}
          : { sessionId: checkSessionId(session_id, "session_id") }),
      });
      const location = pathOf(event).replace(/[^/]+\/fork$/, head.sessionId);
      return json(201, headJson(head, nowMs()), { location, etag: etagOf(head) });
    },
  },
  {
    method: "GET",
    path: "/v1/sessions/{id}/snapshot",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const options = { providerData: flagOf(event, "provider_data") };
      const head = await sessions.read(key);
      // Known from HEAD, before anything more is read.
      if (head.counts.bytes > MAX_ANSWER_BYTES) throw new AnswerTooLargeError();
      const snapshot = (await sessions.export(head)).snapshot(options);
      if (answerBytes(snapshot) > MAX_ANSWER_BYTES) throw new AnswerTooLargeError();
      return json(200, snapshot, { etag: etagOf(head) });
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
  {
    method: "GET",
    path: "/v1/sessions/{id}/turns/{turn_id}",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      return json(200, foundTurnJson(await sessions.turn(key, turnNameOf(event))));
    },
  },
  {
    method: "POST",
    path: "/v1/sessions/{id}/turns/{turn_id}/cancel",
    handler: async (event) => {
      const key = sessionKeyOf(event);
      const turnId = turnNameOf(event);
      checkFieldNames(bodyOf(event), []);
      await turns.cancel({ ...key, turnId });
      return empty(204);
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
    ...(supersedes === undefined ? {} : { supersedes: checkTurnName(supersedes, "supersedes") }),
  };
};

const pageRequestOf = (
  { queryStringParameters }: APIGatewayProxyEvent,
  maxLimit = MAX_PAGE_LIMIT,
): PageRequest => {
  const { limit, cursor, order } = queryStringParameters ?? {};
  if (
    limit !== undefined &&
    !(/^\d{1,4}$/.test(limit) && Number(limit) >= 1 && Number(limit) <= maxLimit)
  ) {
    throw invalid("limit", `must be a whole number from 1 to ${maxLimit}`);
  }
  if (order !== undefined && order !== "asc" && order !== "desc")
    throw invalid("order", "must be asc or desc");
  return {
    ...(limit === undefined ? {} : { limit: Number(limit) }),
    ...(cursor === undefined ? {} : { cursor }),
    ...(order === undefined ? {} : { order }),
  };
};

const flagOf = ({ queryStringParameters }: APIGatewayProxyEvent, name: string): boolean => {
  const value = queryStringParameters?.[name] ?? "false";
  if (value !== "true" && value !== "false") throw invalid(name, "must be true or false");
  return value === "true";
};

/** As the caller sees it: with the stage, or the base path of a custom domain. */
const pathOf = (event: APIGatewayProxyEvent): string =>
  (event.requestContext.path ?? event.path).replace(/\/+$/, "");
