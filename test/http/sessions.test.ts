import { describe, expect, test } from "vitest";
import { call, type Sent, service } from "../support/http.ts";

const create = (body?: unknown): Sent => ({ method: "POST", path: "/v1/sessions", body });
const get = (id: string, headers: Record<string, string> = {}): Sent => ({
  method: "GET",
  path: `/v1/sessions/${id}`,
  headers,
});
const remove = (id: string, headers: Record<string, string> = {}): Sent => ({
  ...get(id, headers),
  method: "DELETE",
});
const turn = (id: string, input = "hi", headers: Record<string, string> = {}): Sent => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  headers,
  body: { input },
});

const BORN = {
  created_at: "2100-12-01T12:00:00.000000+00:00",
  updated_at: "2100-12-01T12:00:00.000000+00:00",
  expires_at: "2100-12-01T13:00:00.000000+00:00",
  version: 1,
  message_count: 0,
  turn_count: 0,
  size_bytes: 0,
  turn: null,
};

describe("GET /ping", () => {
  test("tells the version, to anybody", async () => {
    const { handler } = service();
    const reply = await call(handler, { method: "GET", path: "/ping", owner: null });
    expect(reply).toMatchObject({ status: 200, json: { status: "ok", version: "1.2.3" } });
  });
});

describe("POST /v1/sessions", () => {
  test("creates a session of the id and metadata that it is given", async () => {
    const { handler } = service();
    const created = await call(
      handler,
      create({ session_id: "s-1_A", metadata: { lang: "de", tags: [1, null] } }),
    );
    expect(created.status).toBe(201);
    expect(created.json).toEqual({
      session_id: "s-1_A",
      ...BORN,
      metadata: { lang: "de", tags: [1, null] },
    });
    expect(created.headers).toMatchObject({ etag: '"1.1"', location: "/dev/v1/sessions/s-1_A" });
    const read = await call(handler, get("s-1_A"));
    expect(read).toMatchObject({ status: 200, json: created.json });
    expect(read.headers).toMatchObject({ etag: '"1.1"' });
  });

  test.each([
    ["no body", undefined],
    ["an empty body", ""],
    ["an empty object", {}],
  ])("makes an id of 12 hex digits for %s", async (_, body) => {
    const { handler } = service();
    const { status, json } = await call(handler, create(body));
    expect(status).toBe(201);
    expect(json).toEqual({
      session_id: expect.stringMatching(/^[0-9a-f]{12}$/),
      ...BORN,
      metadata: {},
    });
    expect((await call(handler, get(String(json["session_id"])))).status).toBe(200);
  });

  test("takes an id of 128 characters", async () => {
    const { handler } = service();
    expect((await call(handler, create({ session_id: "a".repeat(128) }))).status).toBe(201);
  });

  test("refuses an id that is taken, and leaves what stands there", async () => {
    const { handler } = service();
    await call(handler, create({ session_id: "s", metadata: { first: true } }));
    const again = await call(handler, create({ session_id: "s" }));
    expect(again).toMatchObject({ status: 409, json: { code: "session_exists" } });
    expect((await call(handler, get("s"))).json["metadata"]).toEqual({ first: true });
  });

  test("keeps __proto__ and constructor as data (C18)", async () => {
    const { handler } = service();
    const metadata = '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}';
    await call(handler, create(`{"session_id":"s","metadata":${metadata}}`));
    const { text } = await call(handler, get("s"));
    expect(text).toContain(`"metadata":${metadata}`);
    expect(Reflect.get({}, "admin")).toBeUndefined();
    expect(Reflect.get({}, "x")).toBeUndefined();
  });

  test("keeps empty texts, empty objects and null in the metadata (C02, C07)", async () => {
    const { handler } = service();
    const metadata = { "": "", a: { b: {} }, c: [], d: null, e: 0, f: false, "ключ 🔑": "\u0000" };
    await call(handler, create({ session_id: "s", metadata }));
    expect((await call(handler, get("s"))).json["metadata"]).toEqual(metadata);
  });
});

describe("GET /v1/sessions/{id}", () => {
  test("moves the version, the counts and updated_at with each turn, and created_at never", async () => {
    const { handler, clock } = service();
    await call(handler, turn("s"));
    clock.advance(1500);
    await call(handler, turn("s"));
    const { json, headers } = await call(handler, get("s"));
    expect(json).toMatchObject({
      ...BORN,
      updated_at: "2100-12-01T12:00:01.500000+00:00",
      version: 3,
      message_count: 4,
      turn_count: 2,
      size_bytes: expect.any(Number),
    });
    expect(headers["etag"]).toBe('"3.1"');
  });

  test.each(['"1.1"', 'W/"1.1"', '"0.1", "1.1"', "*"])(
    "answers 304 to If-None-Match: %s",
    async (tag) => {
      const { handler } = service();
      await call(handler, create({ session_id: "s" }));
      const reply = await call(handler, get("s", { "If-None-Match": tag }));
      expect(reply.status).toBe(304);
      expect(reply.headers["etag"]).toBe('"1.1"');
    },
  );

  test.each(['"2.1"', '"1"', "1.1", "", '"1.1'])(
    "answers 200 to If-None-Match: %s",
    async (tag) => {
      const { handler } = service();
      await call(handler, create({ session_id: "s" }));
      expect((await call(handler, get("s", { "If-None-Match": tag }))).status).toBe(200);
    },
  );

  test("answers 404 to If-None-Match where there is no session", async () => {
    const { handler } = service();
    expect((await call(handler, get("s", { "If-None-Match": "*" }))).status).toBe(404);
  });
});

describe("DELETE /v1/sessions/{id}", () => {
  test("removes the session, and can't be repeated", async () => {
    const { handler } = service();
    await call(handler, create({ session_id: "s", metadata: { a: 1 } }));
    expect((await call(handler, remove("s"))).status).toBe(204);
    expect((await call(handler, get("s"))).status).toBe(404);
    expect((await call(handler, remove("s"))).status).toBe(404);
  });

  test("frees the id for a session that has nothing of the old one", async () => {
    const { handler } = service();
    await call(handler, turn("s", "hi", { "idempotency-key": "k" }));
    await call(handler, remove("s"));
    const { json } = await call(handler, create({ session_id: "s" }));
    expect(json).toEqual({ session_id: "s", ...BORN, metadata: {} });
    const replayed = await call(handler, turn("s", "hi", { "idempotency-key": "k" }));
    expect(replayed.json).toMatchObject({ version: 2, replayed: false });
  });

  test.each(['"2.1"', '"2"', "2.1", "2"])("deletes at the version of If-Match: %s", async (tag) => {
    const { handler } = service();
    await call(handler, turn("s"));
    expect((await call(handler, remove("s", { "If-Match": tag }))).status).toBe(204);
  });

  test.each(['"1.1"', '"1"', '"2.2"', '"3.1"', "3"])(
    "keeps a session that isn't at If-Match: %s",
    async (tag) => {
      const { handler } = service();
      await call(handler, turn("s"));
      const refused = await call(handler, remove("s", { "If-Match": tag }));
      expect(refused).toMatchObject({ status: 412, json: { code: "version_mismatch" } });
      expect(refused.json["detail"]).toContain("version 2");
      expect((await call(handler, get("s"))).json).toMatchObject({ version: 2, message_count: 2 });
    },
  );
});

test("a problem stays small, however long the names and numbers are that it is about", async () => {
  const { handler } = service();
  const long = "n".repeat(4_000_000);
  const field = await call(handler, create({ [long]: 1 }));
  expect(field.json["errors"]).toEqual([
    { path: `${"n".repeat(1000)}…`, message: expect.stringMatching(/^isn't a field/) },
  ]);
  const nested = await call(handler, create(`{"metadata":{"${long}":1e999}}`));
  expect([field, nested].map(({ status }) => status)).toEqual([400, 400]);
  expect(Buffer.byteLength(nested.text) + Buffer.byteLength(field.text)).toBeLessThan(10_000);
});
