/**
 * The REST API as one Lambda handler for API Gateway's proxy events. It converts: what a request
 * means is decided in `turns/`.
 */
import middy from "@middy/core";
import httpHeaderNormalizer from "@middy/http-header-normalizer";
import httpRouter from "@middy/http-router";
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from "aws-lambda";
import { MethodNotAllowedError, RouteNotFoundError } from "./errors.ts";
import { problemResponse } from "./problem.ts";
import { type Route, type RoutesOptions, routes } from "./routes.ts";

export interface HttpHandlerOptions extends Omit<RoutesOptions, "nowMs"> {
  readonly nowMs?: () => number;
  /** Is told of every error that a request ended with, the answer's status, and the request's id. */
  readonly onError?: (
    error: unknown,
    answer: { readonly status: number; readonly requestId: string },
  ) => void;
}

export type HttpHandler = (
  event: APIGatewayProxyEvent,
  context: Context,
) => Promise<APIGatewayProxyResult>;

export const httpHandler = ({
  nowMs = Date.now,
  onError = () => {},
  ...options
}: HttpHandlerOptions): HttpHandler => {
  const served = routes({ nowMs, ...options });
  const router = httpRouter<APIGatewayProxyEvent, APIGatewayProxyResult>({
    routes: [...served, ...refusedMethods(served)],
    notFoundResponse: ({ method, path }) => {
      throw new RouteNotFoundError(method, path);
    },
  });
  // Turns stop by themselves before the function's deadline, and release their session: see `turns`.
  const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>({ timeoutEarlyInMillis: 0 })
    .before(({ event }) => {
      event.headers ??= {};
      event.path = pathInApi(event);
    })
    .use(httpHeaderNormalizer())
    .onError((request) => {
      const requestId = request.event.requestContext?.requestId ?? request.context.awsRequestId;
      const response = problemResponse(request.error, requestId);
      onError(request.error, { status: response.statusCode, requestId });
      request.response = response;
    })
    .handler(router);
  return (event, context) => handler(event, context);
};

/** Behind a custom domain `path` begins with the base path of its mapping, or with the stage; the resource never does. */
const pathInApi = ({ resource, path, pathParameters }: APIGatewayProxyEvent): string => {
  const names = [...(resource ?? "").matchAll(PATH_PARAMETER)].map(([, name = ""]) => name);
  const isFilled = names.every((name) => typeof pathParameters?.[name] === "string");
  if (!resource || !isFilled) return path;
  return resource.replace(PATH_PARAMETER, (_, name: string) => pathParameters?.[name] ?? "");
};

const PATH_PARAMETER = /\{(\w+)\+?\}/g;

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"] as const;

/** For each path, the methods that it doesn't take: they are told which it does. */
const refusedMethods = (served: readonly Route[]) =>
  [...new Set(served.map(({ path }) => path))].flatMap((path) => {
    const allowed = served.filter((route) => route.path === path).map(({ method }) => method);
    return METHODS.filter((method) => !allowed.some((known) => known === method)).map((method) => ({
      method,
      path,
      handler: async (): Promise<never> => {
        throw new MethodNotAllowedError(allowed);
      },
    }));
  });
