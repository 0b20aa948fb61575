import fc from "fast-check";
import { expect, test } from "vitest";
import { assistantMessage } from "../../lib/session/message.ts";
import { call, invoke, proxyEvent, type Sent, service } from "../support/http.ts";
import { event, requestContext } from "./events.ts";

const REPLIES = 10_000;

test("every event gets a well-formed answer, and none is our fault (H11)", {
  timeout: 60_000,
}, async () => {
  const { handler, errors } = service({
    replies: Array.from({ length: REPLIES }, () => assistantMessage("ok")),
  });
  const statuses = new Set<number>();
  await fc.assert(
    fc.asyncProperty(
      event,
      requestContext,
      async (
        { target: { method, path }, query, basePath, body: [given, base64], ...fields },
        context,
      ) => {
        const sent: Sent = {
          method,
          path,
          ...fields,
          body: given,
          base64,
          ...(query ? { query } : {}),
          ...(basePath ? { basePath } : {}),
        };
        const whole = proxyEvent(context === "of bob" ? { ...sent, owner: "bob" } : sent);
        const received =
          typeof context === "string" ? whole : { ...whole, requestContext: context };
        const reply = await invoke(handler, received);
        expect(reply.status).toBeLessThan(500);
        statuses.add(reply.status);
      },
    ),
    { numRuns: 2000 },
  );
  // The events reach what they are meant to reach: each of these answers comes about once in a
  // hundred events or oftener, so that chance leaves none out.
  expect([...statuses]).toEqual(
    expect.arrayContaining([200, 201, 204, 304, 400, 401, 404, 405, 409, 412, 415, 422]),
  );
  expect(errors.every(({ status }) => status < 500)).toBe(true);
  expect((await call(handler, { method: "GET", path: "/ping" })).status).toBe(200);
});
