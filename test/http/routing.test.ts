import { describe, expect, test } from "vitest";
import { call, invoke, proxyEvent, type Sent, service } from "../support/http.ts";

const create: Sent = { method: "POST", path: "/v1/sessions", body: { session_id: "s" } };
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];

describe("routes", () => {
  test.each([
    ["/ping", "GET"],
    ["/v1/sessions", "POST, GET"],
    ["/v1/sessions/s", "GET, DELETE, PATCH"],
    ["/v1/sessions/s/messages", "GET"],
    ["/v1/sessions/s/snapshot", "GET, PUT"],
    ["/v1/sessions/s/turns", "GET, POST"],
    ["/v1/sessions/s/turns/k", "GET"],
    ["/v1/sessions/s/turns/cancel", "GET"],
    ["/v1/sessions/s/turns/k/cancel", "POST"],
    ["/v1/sessions/s/fork", "POST"],
  ])("of %s take %s, and tell so to every other method (H03)", async (path, allow) => {
    const { handler } = service();
    await call(handler, create);
    for (const method of METHODS.filter((other) => !allow.split(", ").includes(other))) {
      for (const at of [path, `${path}/`]) {
        const refused = await call(handler, { method, path: at });
        expect(refused).toMatchObject({ status: 405, json: { code: "method_not_allowed" } });
        expect(refused.headers["allow"]).toBe(allow);
        expect(refused.json["detail"]).toBe(`this route takes ${allow}`);
      }
    }
    expect((await call(handler, { method: "GET", path: "/v1/sessions/s" })).json).toMatchObject({
      version: 1,
    });
  });

  test.each([
    "/",
    "/v1",
    "/v1/",
    "/v2/sessions",
    "/V1/sessions",
    "/v1/Sessions",
    "/v1/session",
    "/sessions",
    "//v1/sessions",
    "/v1//sessions",
    "/v1/sessions//messages",
    "/v1/sessions/s//messages",
    "/v1/sessions/s/messages//",
    "/v1/sessions/s/nothing",
    "/v1/sessions/s/turns//cancel",
    "/v1/sessions/s/turns/k/stop",
    "/v1/sessions/s/turns/k//cancel",
    "/v1/sessions/s/turns/k/cancel/x",
    "/v1/sessions/s/messages/k/cancel",
    "/v1/sessions/s/messages/1",
    "/v1/sessions/s/t/u/v/w",
    "/v1/%zz",
    "/v1/__proto__",
    "/__proto__",
    "/constructor",
    "/ping/ping",
    "/dev/ping",
    "/dev/v1/sessions",
  ])("are no others: %s (H03)", async (path) => {
    const { handler } = service();
    for (const method of METHODS) {
      const refused = await call(handler, { method, path, body: "{}" });
      expect(refused).toMatchObject({ status: 404, json: { code: "not_found" } });
      expect(refused.json["detail"]).toBe(`there is no route ${method} ${path}`);
    }
  });

  test("are the same with a slash behind them (H03)", async () => {
    const { handler } = service();
    const created = await call(handler, { ...create, path: "/v1/sessions/" });
    expect(created).toMatchObject({ status: 201, headers: { location: "/dev/v1/sessions/s" } });
    const turn = {
      method: "POST",
      path: "/v1/sessions/s/turns/",
      headers: { "idempotency-key": "k" },
      body: { input: "hi" },
    };
    expect((await call(handler, turn)).status).toBe(200);
    const cancel = { method: "POST", path: "/v1/sessions/s/turns/k/cancel/" };
    expect((await call(handler, cancel)).status).toBe(204);
    for (const path of [
      "/ping/",
      "/v1/sessions/s/",
      "/v1/sessions/",
      "/v1/sessions/s/messages/",
      "/v1/sessions/s/turns/",
      "/v1/sessions/s/turns/k/",
      "/v1/sessions/s/snapshot/",
    ]) {
      expect((await call(handler, { method: "GET", path })).status).toBe(200);
    }
    const { json } = await call(handler, { method: "GET", path: "/v1/sessions/s/snapshot" });
    const copy = {
      method: "PUT",
      path: "/v1/sessions/c/snapshot/",
      body: { ...json, session_id: "c" },
    };
    expect(await call(handler, copy)).toMatchObject({
      status: 201,
      headers: { location: "/dev/v1/sessions/c" },
    });
    const fork = { method: "POST", path: "/v1/sessions/s/fork/", body: { session_id: "f" } };
    expect(await call(handler, fork)).toMatchObject({
      status: 201,
      headers: { location: "/dev/v1/sessions/f" },
    });
  });

  test.each(["/api", "/dev", "/v1", "/a/b"])(
    "are the same behind a custom domain's base path %s (H03)",
    async (basePath) => {
      const { handler } = service();
      const created = await call(handler, { ...create, basePath });
      expect(created).toMatchObject({
        status: 201,
        headers: { location: `${basePath}/v1/sessions/s` },
      });
      const turn = {
        method: "POST",
        path: "/v1/sessions/s/turns",
        headers: { "idempotency-key": "k" },
        body: { input: "hi" },
        basePath,
      };
      expect((await call(handler, turn)).status).toBe(200);
      const cancel = { method: "POST", path: "/v1/sessions/s/turns/k/cancel", basePath };
      expect((await call(handler, cancel)).status).toBe(204);
      for (const path of [
        "/ping",
        "/v1/sessions/s",
        "/v1/sessions",
        "/v1/sessions/s/messages",
        "/v1/sessions/s/turns",
        "/v1/sessions/s/turns/k",
        "/v1/sessions/s/snapshot",
      ]) {
        expect((await call(handler, { method: "GET", path, basePath })).status).toBe(200);
      }
      const fork = { method: "POST", path: "/v1/sessions/s/fork", body: { session_id: "f" } };
      expect(await call(handler, { ...fork, basePath })).toMatchObject({
        status: 201,
        headers: { location: `${basePath}/v1/sessions/f` },
      });
      expect(
        (await call(handler, { method: "GET", path: "/v1/sessions/%zz", basePath })).status,
      ).toBe(400);
      expect(
        (await call(handler, { method: "PUT", path: "/v1/sessions/s", basePath })).status,
      ).toBe(405);
      expect((await call(handler, { method: "GET", path: "/v1/nothing", basePath })).status).toBe(
        404,
      );
    },
  );

  test.each([
    ["one for each route", "/v1/sessions/{id}/messages", { id: "s" }],
    ["one for everything", "/{proxy+}", { proxy: "v1/sessions/s/messages" }],
    ["one that isn't told", undefined, null],
    ["one without its parameters", "/v1/{proxy+}", null],
  ])("don't depend on the API's resources: %s", async (_, resource, pathParameters) => {
    const { handler } = service();
    await call(handler, create);
    const { resource: _resource, ...event } = proxyEvent({
      method: "GET",
      path: "/v1/sessions/s/messages",
    });
    const sent = { ...event, pathParameters, ...(resource === undefined ? {} : { resource }) };
    const reply = await invoke(handler, sent);
    expect(reply).toMatchObject({ status: 200, json: { data: [] } });
  });

  test("take header names in any case", async () => {
    const { handler } = service();
    const turn = { method: "POST", path: "/v1/sessions/s/turns", body: { input: "hi" } };
    for (const name of [
      "idempotency-key",
      "Idempotency-Key",
      "IDEMPOTENCY-KEY",
      "iDeMpOtEnCy-kEy",
    ]) {
      const { json } = await call(handler, { ...turn, headers: { [name]: "k" } });
      expect(json["turn_id"]).toBe("k");
    }
  });

  test("don't read what a caller may say about itself", async () => {
    const { handler } = service();
    await call(handler, create);
    const headers = {
      "x-dev-owner": "ann",
      "x-http-method-override": "DELETE",
      authorization: "Bearer ann",
    };
    expect(
      (await call(handler, { method: "GET", path: "/v1/sessions/s", headers, owner: "bob" }))
        .status,
    ).toBe(404);
    expect((await call(handler, { method: "GET", path: "/v1/sessions/s", headers })).status).toBe(
      200,
    );
  });
});
