import { describe, expect, test } from "vitest";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import {
  DamagedSessionError,
  SessionTooLargeError,
  StoreThrottledError,
  StoreUnavailableError,
} from "../../lib/store/errors.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, invoke, proxyEvent, REQUEST_ID, type Sent, service } from "../support/http.ts";
import { busyService, cancel, HEAD, keyed, oneTurn, turn } from "./requests.ts";

describe("a turn that fails", () => {
  const SECRET = "key sk-123 at 10.0.0.7";

  test("for its model is a 502 that tells nothing of the cause, which is reported", async () => {
    const { handler, errors } = service({
      replies: [new Error(SECRET), assistantMessage("better")],
    });
    const failed = await call(handler, keyed("k"));
    expect(failed).toMatchObject({
      status: 502,
      json: { code: "model_failed", request_id: REQUEST_ID },
    });
    expect(failed.text).not.toContain("sk-123");
    expect(errors).toEqual([{ error: expect.any(Error), status: 502, requestId: REQUEST_ID }]);
    expect(String(errors[0]?.error)).toContain(SECRET);
    expect((await call(handler, HEAD)).json).toMatchObject({
      version: 1,
      message_count: 0,
      turn: null,
    });
    expect(await call(handler, keyed("k"))).toMatchObject({
      status: 200,
      json: { replayed: false, final: "better" },
    });
  });

  test("for its model's reply is a 502 too", async () => {
    const { handler } = service({ replies: [userMessage("not for a model to say")] });
    expect((await call(handler, turn("hi"))).status).toBe(502);
  });

  test.each([
    [500, "internal", undefined, new Error(SECRET)],
    [500, "internal", undefined, new DamagedSessionError(SECRET)],
    [500, "internal", undefined, new TypeError(SECRET)],
    [503, "store_unavailable", "1", new StoreUnavailableError(SECRET)],
    [503, "throttled", "1", new StoreThrottledError(SECRET)],
  ])(
    "for its store is a %i %s that tells nothing of the cause, which is reported",
    async (...[status, code, retryAfter, error]) => {
      const { handler, errors } = service({ store: failingStore("claim", error) });
      const failed = await call(handler, turn("hi"));
      expect(failed).toMatchObject({ status, json: { code } });
      expect(failed.headers["retry-after"]).toBe(retryAfter);
      expect(failed.text).not.toContain("sk-123");
      expect(errors).toEqual([{ error, status, requestId: REQUEST_ID }]);
    },
  );

  test("for its size is a 413", async () => {
    const { handler } = service({
      store: failingStore("commit", new SessionTooLargeError("too much")),
    });
    expect(await call(handler, turn("hi"))).toMatchObject({
      status: 413,
      json: { code: "too_large", detail: "too much" },
    });
  });

  test("for its time is a 504 before the function's own end, and frees the session", async () => {
    const { handler, clock, running } = await busyService({ remainingMs: 8000 });
    clock.advance(7900);
    const timedOut = await running;
    expect(timedOut).toMatchObject({ status: 504, json: { code: "turn_timeout" } });
    expect(timedOut.headers["retry-after"]).toBe("1");
    expect((await call(handler, HEAD)).json).toMatchObject({ version: 1, turn: null });
    expect((await call(handler, keyed("k"))).json).toMatchObject({ replayed: false, final: "ok" });
  });

  test("tells its own request and nothing of the one before on a warm start (H12)", async () => {
    const { handler, errors } = service({ replies: [new Error("of ann"), new Error("of bob")] });
    await call(handler, { ...turn("ann's secret"), owner: "ann" });
    await call(handler, { ...turn("bob's secret"), owner: "bob" });
    expect(errors.map(({ error }) => String(error))).toEqual([
      expect.stringContaining("of ann"),
      expect.stringContaining("of bob"),
    ]);
    expect(JSON.stringify(errors[1])).not.toContain("ann");
  });
});

describe("what goes wrong on our side", () => {
  const fail = async (): Promise<never> => {
    throw new Error("secret of the table");
  };
  const failing = () =>
    service({
      store: {
        ...memorySessionStore(),
        read: fail,
        list: fail,
      },
    });

  test("is a 500 that names the request and nothing else, on every route that meets it", async () => {
    const { handler, errors } = failing();
    const requests: Sent[] = [
      { method: "GET", path: "/v1/sessions/s" },
      { method: "DELETE", path: "/v1/sessions/s" },
      { method: "GET", path: "/v1/sessions" },
      { method: "PATCH", path: "/v1/sessions/s", body: { metadata: {} } },
      { method: "GET", path: "/v1/sessions/s/messages" },
      { method: "GET", path: "/v1/sessions/s/turns" },
      oneTurn("k"),
      cancel("k"),
      { method: "POST", path: "/v1/sessions/s/fork" },
      { method: "GET", path: "/v1/sessions/s/snapshot" },
    ];
    for (const request of requests) {
      const failed = await call(handler, request);
      expect(failed).toMatchObject({
        status: 500,
        json: { code: "internal", request_id: "request-1" },
      });
      expect(failed.text).not.toContain("secret");
      expect(failed.headers["retry-after"]).toBeUndefined();
    }
    expect(errors.map(({ status }) => status)).toEqual(requests.map(() => 500));
  });

  test("is told apart from what a caller did wrong, and both are reported", async () => {
    const { handler, errors } = failing();
    await call(handler, { method: "GET", path: "/v1/sessions/%zz" });
    await call(handler, { method: "GET", path: "/v1/sessions/s" });
    await call(handler, { method: "GET", path: "/ping" });
    expect(errors).toEqual([
      {
        error: expect.objectContaining({ name: "InvalidInputError" }),
        status: 400,
        requestId: "request-1",
      },
      {
        error: expect.objectContaining({ message: "secret of the table" }),
        status: 500,
        requestId: "request-1",
      },
    ]);
  });

  test("names the invocation where the gateway gave no request id", async () => {
    const { handler } = failing();
    const event = proxyEvent({ method: "GET", path: "/v1/sessions/s" });
    const { requestId: _requestId, ...requestContext } = event.requestContext;
    const reply = await invoke(handler, { ...event, requestContext });
    expect(reply.json).toMatchObject({ status: 500, request_id: "invocation-1" });
  });
});

const failingStore = (method: keyof SessionStore, error: Error): SessionStore => ({
  ...memorySessionStore(),
  [method]: async () => {
    throw error;
  },
});
