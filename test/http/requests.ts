/** Requests to one session, "s", and what is often expected of them. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { SettableClock } from "../support/clock.ts";
import { call, type Reply, type Sent, type Service, service } from "../support/http.ts";
import type { ScriptedReply } from "../support/models.ts";

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

export const oneTurn = (turnId: string): Sent => ({
  method: "GET",
  path: `/v1/sessions/s/turns/${encodeURIComponent(turnId)}`,
});

export const cancel = (turnId: string, body?: unknown, headers: Headers = {}): Sent => ({
  method: "POST",
  path: `${oneTurn(turnId).path}/cancel`,
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

interface BusyOptions {
  readonly store?: SessionStore;
  readonly remainingMs?: number;
}

/** A service whose turn "k" waits for its model until `finish`; the model answers the next ones with "ok". */
export const busyService = async ({
  remainingMs = 28_000,
  ...options
}: BusyOptions = {}): Promise<BusyService> => {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const slow = async (): Promise<Message> => {
    asked.resolve();
    await gate.promise;
    return assistantMessage("at last");
  };
  const served = service({ ...options, replies: [slow, ...OKS] });
  const running = call(served.handler, { ...keyed("k"), remainingMs });
  await asked.promise;
  return { ...served, running, finish: gate.resolve };
};

const OKS = Array.from({ length: 50 }, () => assistantMessage("ok"));

export interface WorkingService extends BusyService {
  /** How often the tool was started. */
  readonly starts: () => number;
}

/**
 * A service whose turn "k" is in the midst of a tool call, which mustn't be repeated, until `finish`.
 * The model answers with "ok" then, or as `next` says.
 */
export const workingService = async ({
  remainingMs = 28_000,
  next = [],
  ...options
}: BusyOptions & { readonly next?: readonly ScriptedReply[] } = {}): Promise<WorkingService> => {
  const gate = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  let starts = 0;
  const work = tool({
    name: "work",
    description: "",
    parameters: {},
    run: async () => {
      starts++;
      started.resolve();
      await gate.promise;
      return "worked";
    },
  });
  const first = assistantMessage("", [{ id: "c", name: "work", arguments: {} }]);
  const served = service({ ...options, tools: [work], replies: [first, ...next, ...OKS] });
  const running = call(served.handler, { ...keyed("k"), remainingMs });
  await started.promise;
  return { ...served, running, finish: gate.resolve, starts: () => starts };
};

/** Lets the service's time pass, a few times faster than it does, until it has come so far. */
export const passUntil = async (clock: SettableClock, isSo: () => boolean): Promise<void> => {
  for (; !isSo(); await sleep(5)) clock.advance(25);
};

export const passUntilAnswered = async (
  clock: SettableClock,
  answer: Promise<Reply>,
): Promise<Reply> => {
  let isAnswered = false;
  const ends = answer.finally(() => {
    isAnswered = true;
  });
  await passUntil(clock, () => isAnswered);
  return ends;
};
