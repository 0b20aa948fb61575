/** Requests to one session, "s", and what is often expected of them. */
import { expect } from "vitest";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import { call, type Reply, type Sent, type Service, service } from "../support/http.ts";

export const HEAD: Sent = { method: "GET", path: "/v1/sessions/s" };
export const MESSAGES: Sent = { method: "GET", path: "/v1/sessions/s/messages" };

export const TURNS: Sent = { method: "GET", path: "/v1/sessions/s/turns" };
export const LIST: Sent = { method: "GET", path: "/v1/sessions" };

type Headers = Record<string, string>;

export const turn = (input: string, headers: Headers = {}, fields: object = {}): Sent =>
  turnWith({ input, ...fields }, headers);

export const keyed = (key: string, input = "hi"): Sent => turn(input, { "Idempotency-Key": key });

export const turnWith = (body: unknown, headers: Headers = {}): Sent => ({
  method: "POST",
  path: "/v1/sessions/s/turns",
  headers,
  body,
});

export const createWith = (body: unknown, headers: Headers | null = {}): Sent => ({
  method: "POST",
  path: "/v1/sessions",
  headers,
  body,
});

export const patch = (body: unknown, headers: Headers = {}): Sent => ({
  ...HEAD,
  method: "PATCH",
  headers,
  body,
});

export const fork = (body: unknown, headers: Headers = {}): Sent => ({
  method: "POST",
  path: "/v1/sessions/s/fork",
  headers,
  body,
});

/** Refused with one fault at this path; nothing was done. */
export const expectRefused = async (
  request: Sent,
  path: string,
  message: RegExp = /./,
): Promise<void> => {
  const { handler, model } = service();
  const refused = await call(handler, request);
  expect(refused).toMatchObject({ status: 400, json: { code: "invalid_request" } });
  expect(refused.json["errors"]).toEqual([{ path, message: expect.stringMatching(message) }]);
  expect(refused.json["detail"]).toContain(path);
  expect(model.calls).toHaveLength(0);
  expect((await call(handler, HEAD)).status).toBe(404);
};

export interface BusyService extends Service {
  /** The answer to turn "k" of session "s". */
  readonly running: Promise<Reply>;
  readonly finish: () => void;
}

/** A service whose turn "k" waits for its model until `finish`; the model answers the next with "ok". */
export const busyService = async ({ remainingMs = 28_000 } = {}): Promise<BusyService> => {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const slow = async (): Promise<Message> => {
    asked.resolve();
    await gate.promise;
    return assistantMessage("at last");
  };
  const served = service({ replies: [slow, assistantMessage("ok")] });
  const running = call(served.handler, { ...keyed("k"), remainingMs });
  await asked.promise;
  return { ...served, running, finish: gate.resolve };
};
