import { describe, expect, test } from "vitest";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Service, type ServiceOptions, service } from "../support/http.ts";
import { busyService, createWith, HEAD, keyed, patch, turn } from "./requests.ts";
import { fieldsOf } from "./talk.ts";

/** A service with a session "s" of this metadata. */
const withSession = async (metadata: object, options: ServiceOptions = {}): Promise<Service> => {
  const served = service(options);
  expect((await call(served.handler, createWith({ session_id: "s", metadata }))).status).toBe(201);
  return served;
};

const metadataOf = async ({ handler }: Service): Promise<unknown> =>
  (await call(handler, HEAD)).json["metadata"];

describe("PATCH /v1/sessions/{id}", () => {
  test("merges: null removes, objects are merged at any depth, everything else replaces", async () => {
    const served = await withSession({
      a: 1,
      b: { c: 2, d: { e: null, f: 3 } },
      g: [1, 2],
      h: "x",
    });
    const metadata = {
      a: null,
      b: { c: null, d: { f: { deep: true, none: null } }, new: { gone: null, stays: 0 } },
      g: [3, null],
      never: null,
      i: { j: { k: null } },
    };
    const patched = await call(served.handler, patch({ metadata }));
    expect(patched.status).toBe(200);
    expect(patched.json["metadata"]).toEqual({
      b: { d: { e: null, f: { deep: true } }, new: { stays: 0 } },
      g: [3, null],
      h: "x",
      i: { j: {} },
    });
    expect(await metadataOf(served)).toEqual(patched.json["metadata"]);
  });

  test("answers with the head, under a new ETag, at the same version", async () => {
    const served = await withSession({ a: 1 });
    const { handler, clock } = served;
    const before = await call(handler, HEAD);
    clock.advance(1500);
    const patched = await call(handler, patch({ metadata: { b: 2 } }));
    expect(patched.headers["etag"]).toBe('"1.2"');
    expect(patched.json).toEqual({
      ...before.json,
      metadata: { a: 1, b: 2 },
      updated_at: "2100-12-01T12:00:01.500000+00:00",
    });
    const after = await call(handler, HEAD);
    expect(after).toMatchObject({ json: patched.json, headers: { etag: '"1.2"' } });
  });

  test("keeps the order of keys and __proto__ as data (C18)", async () => {
    const served = await withSession({ z: 1, a: 2 });
    const text =
      '{"metadata":{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}},"z":3}}';
    await call(served.handler, patch(text));
    await call(served.handler, patch('{"metadata":{"__proto__":{"more":1}}}'));
    expect((await call(served.handler, HEAD)).text).toContain(
      '"metadata":{"z":3,"a":2,"__proto__":{"admin":true,"more":1},"constructor":{"prototype":{"x":1}}}',
    );
    expect(Reflect.get({}, "admin")).toBeUndefined();
    expect(Reflect.get({}, "x")).toBeUndefined();
    await call(served.handler, patch('{"metadata":{"__proto__":null,"constructor":null}}'));
    expect(await metadataOf(served)).toEqual({ z: 3, a: 2 });
  });

  test("of nothing changes nothing but the ETag", async () => {
    const served = await withSession({ a: 1 });
    const patched = await call(served.handler, patch({ metadata: {} }));
    expect(patched).toMatchObject({ status: 200, headers: { etag: '"1.2"' } });
    expect(await metadataOf(served)).toEqual({ a: 1 });
  });

  test.each([undefined, "application/json", "application/merge-patch+json; charset=utf-8"])(
    "may be of the type %s",
    async (type) => {
      const { handler } = await withSession({});
      const headers = type === undefined ? {} : { "content-type": type };
      expect((await call(handler, patch({ metadata: { a: 1 } }, headers))).status).toBe(200);
    },
  );

  test.each(['"2.1"', '"2"', "2.1", "2"])("is done at the version of If-Match: %s", async (tag) => {
    const served = await withSession({});
    await call(served.handler, turn("hi"));
    const patched = await call(served.handler, patch({ metadata: { a: 1 } }, { "If-Match": tag }));
    expect(patched).toMatchObject({ status: 200, json: { version: 2, metadata: { a: 1 } } });
  });

  test.each(['"1.1"', '"1"', '"2.2"', '"3.1"', "3", '"2.0"'])(
    "is refused where the session isn't at If-Match: %s",
    async (tag) => {
      const served = await withSession({ old: true });
      await call(served.handler, turn("hi"));
      const refused = await call(
        served.handler,
        patch({ metadata: { a: 1 } }, { "if-match": tag }),
      );
      expect(refused).toMatchObject({ status: 412, json: { code: "version_mismatch" } });
      const head = await call(served.handler, HEAD);
      expect(head).toMatchObject({
        json: { metadata: { old: true } },
        headers: { etag: '"2.1"' },
      });
    },
  );

  test("by the whole ETag is done once, by the version again and again", async () => {
    const served = await withSession({});
    const whole = { "if-match": '"1.1"' };
    expect((await call(served.handler, patch({ metadata: { a: 1 } }, whole))).status).toBe(200);
    expect((await call(served.handler, patch({ metadata: { b: 1 } }, whole))).status).toBe(412);
    for (const name of ["c", "d"]) {
      const request = patch({ metadata: { [name]: 1 } }, { "if-match": '"1"' });
      expect((await call(served.handler, request)).status).toBe(200);
    }
    expect(await metadataOf(served)).toEqual({ a: 1, c: 1, d: 1 });
    // A turn takes the ETag too, and is told that the metadata moved.
    expect((await call(served.handler, turn("hi", { "if-match": '"1.1"' }))).status).toBe(412);
    expect((await call(served.handler, turn("hi", { "if-match": '"1.4"' }))).status).toBe(200);
  });

  test("doesn't disturb a running turn, nor does the turn undo it", async () => {
    const served = await busyService();
    const patched = await call(
      served.handler,
      patch({ metadata: { a: 1 } }, { "if-match": '"1.1"' }),
    );
    expect(patched).toMatchObject({
      status: 200,
      headers: { etag: '"1.2"' },
      json: { version: 1, turn: { turn_id: "k", status: "running" } },
    });
    served.finish();
    expect(await served.running).toMatchObject({ status: 200, json: { version: 2 } });
    const head = await call(served.handler, HEAD);
    expect(head).toMatchObject({
      headers: { etag: '"2.2"' },
      json: { metadata: { a: 1 }, message_count: 2 },
    });
  });

  test("loses none of many at once", async () => {
    const served = await withSession({});
    const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
    const patched = await Promise.all(
      names.map((name) => call(served.handler, patch({ metadata: { [name]: 1 } }))),
    );
    expect(patched.every(({ status }) => status === 200)).toBe(true);
    expect(new Set(patched.map(({ headers }) => headers["etag"])).size).toBe(20);
    expect(await metadataOf(served)).toEqual(Object.fromEntries(names.map((name) => [name, 1])));
  });

  test("of many at once under one ETag is done once", async () => {
    const served = await withSession({});
    const patched = await Promise.all(
      ["a", "b", "c"].map((name) =>
        call(served.handler, patch({ metadata: { [name]: 1 } }, { "if-match": '"1.1"' })),
      ),
    );
    expect(patched.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 412, 412]);
    expect(Object.keys(fieldsOf(await metadataOf(served)))).toHaveLength(1);
  });

  test("is done once where the store's answer gets lost and the write is sent again", async () => {
    const store = memorySessionStore();
    const again: SessionStore["setMetadata"] = async (write) => {
      await store.setMetadata(write);
      return store.setMetadata(write);
    };
    const served = await withSession({ a: 1 }, { store: { ...store, setMetadata: again } });
    for (const [tag, etag] of [
      ['"1.1"', '"1.2"'],
      ['"1"', '"1.3"'],
    ] as const) {
      const patched = await call(
        served.handler,
        patch({ metadata: { b: tag } }, { "if-match": tag }),
      );
      expect(patched).toMatchObject({
        status: 200,
        headers: { etag },
        json: { metadata: { b: tag } },
      });
    }
  });

  test("is a 404 for no session, a deleted and an expired one", async () => {
    const { handler, clock } = service({ lifetimeSeconds: 3600 });
    const request = patch({ metadata: { a: 1 } });
    expect((await call(handler, request)).status).toBe(404);
    await call(handler, keyed("k"));
    await call(handler, { ...HEAD, method: "DELETE" });
    expect((await call(handler, request)).status).toBe(404);
    await call(handler, keyed("k"));
    expect((await call(handler, request)).status).toBe(200);
    clock.advance(3_600_000);
    expect((await call(handler, request)).status).toBe(404);
  });
});

describe("metadata", () => {
  test("are asked for where a PATCH brings none", async () => {
    const { handler } = await withSession({});
    expect(await call(handler, patch({}))).toMatchObject({
      status: 400,
      json: { errors: [{ path: "metadata", message: "is missing" }] },
    });
  });

  /** `{"a":"…"}` of so many bytes. */
  const ofBytes = (bytes: number) => ({ a: `é${"x".repeat(bytes - 10)}` });
  const TOO_LARGE = { status: 413, json: { code: "too_large" } };

  test("are at most 64 KB of JSON once they are merged", async () => {
    const served = await withSession({});
    expect((await call(served.handler, patch({ metadata: ofBytes(65_536) }))).status).toBe(200);
    const refused = await call(served.handler, patch({ metadata: ofBytes(65_537) }));
    expect(refused).toMatchObject(TOO_LARGE);
    expect(refused.json["detail"]).toBe(
      "the metadata are 65537 bytes of JSON; at most 65536 are taken",
    );
    expect(await call(served.handler, patch({ metadata: { b: 1 } }))).toMatchObject(TOO_LARGE);
    expect(await metadataOf(served)).toEqual(ofBytes(65_536));
    // What takes away fits always.
    expect((await call(served.handler, patch({ metadata: { a: null, b: 1 } }))).status).toBe(200);
    expect(await metadataOf(served)).toEqual({ b: 1 });
  });

  test("are at most that in a new session and in a snapshot too", async () => {
    const { handler } = service();
    const create = (bytes: number) => createWith({ session_id: "s", metadata: ofBytes(bytes) });
    const put = (bytes: number) => ({
      method: "PUT",
      path: "/v1/sessions/p/snapshot",
      body: {
        session_id: "p",
        created_at: "2100-12-01T12:00:00Z",
        metadata: ofBytes(bytes),
        messages: [],
      },
    });
    for (const make of [create, put]) {
      expect(await call(handler, make(65_537))).toMatchObject(TOO_LARGE);
      expect((await call(handler, make(65_536))).status).toBe(201);
    }
  });
});
