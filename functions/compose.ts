/** Puts the parts together. At module scope, once a process: clients keep their connections between invocations. */

import type { Agent } from "../lib/agent/agent.ts";
import { type HttpHandler, httpHandler } from "../lib/http/handler.ts";
import { dynamoClient } from "../lib/store/dynamodb/client.ts";
import { dynamoSessionStore } from "../lib/store/dynamodb/store.ts";
import { createSessions } from "../lib/turns/sessions.ts";
import { createTurns } from "../lib/turns/turns.ts";
import project from "../package.json" with { type: "json" };
import { config } from "./config.ts";

const { dynamodbEndpoint, tableName, lifetimeSeconds, leaseSeconds, maxInputBytes } = config;

const client = dynamoClient(dynamodbEndpoint ? { endpoint: dynamodbEndpoint } : {});
const store = dynamoSessionStore({ client, tableName });

export const composeHttp = (agent: Agent): HttpHandler =>
  httpHandler({
    turns: createTurns({ agent, store, lifetimeSeconds, leaseSeconds, maxInputBytes }),
    sessions: createSessions({ store, lifetimeSeconds }),
    version: project.version,
    onError: (error, { status, requestId }) => {
      if (status >= 500) console.error(requestId, error);
    },
  });
