import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { type Route, routes } from "../../lib/http/routes.ts";
import { demoModel } from "../../lib/models/demo.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { call, invoke, proxyEvent, type Sent, service } from "../support/http.ts";
import { busyService, cancel, oneTurn } from "./requests.ts";

const SNAPSHOT = {
  session_id: "s",
  created_at: "2100-12-01T12:00:00Z",
  metadata: {},
  messages: [],
};

/** A request of each kind, to session "s". Those that would create it are apart: another owner's stays another's. */
const READS: readonly Sent[] = [
  { method: "GET", path: "/v1/sessions/s" },
  { method: "GET", path: "/v1/sessions/s", headers: { "if-none-match": "*" } },
  { method: "DELETE", path: "/v1/sessions/s" },
  { method: "DELETE", path: "/v1/sessions/s", headers: { "if-match": '"1.1"' } },
  { method: "GET", path: "/v1/sessions/s/messages" },
  { method: "GET", path: "/v1/sessions/s/messages", query: { cursor: "x" } },
  { method: "GET", path: "/v1/sessions/s/turns" },
  { method: "GET", path: "/v1/sessions/s/turns", query: { cursor: "x" } },
  { method: "GET", path: "/v1/sessions/s/turns/k" },
  { method: "POST", path: "/v1/sessions/s/turns/k/cancel" },
  { method: "GET", path: "/v1/sessions/s/snapshot" },
  { method: "PATCH", path: "/v1/sessions/s", body: { metadata: { a: 1 } } },
  {
    method: "PATCH",
    path: "/v1/sessions/s",
    headers: { "if-match": '"2.1"' },
    body: { metadata: {} },
  },
  { method: "POST", path: "/v1/sessions/s/fork" },
  { method: "POST", path: "/v1/sessions/s/fork", body: { at_turn: "k", session_id: "f" } },
];
const LIST: Sent = { method: "GET", path: "/v1/sessions" };
const CREATES: readonly Sent[] = [
  { method: "POST", path: "/v1/sessions", body: { session_id: "s" } },
  { method: "PUT", path: "/v1/sessions/s/snapshot", body: SNAPSHOT },
  { method: "POST", path: "/v1/sessions/s/turns", body: { input: "hi" } },
];
const turnOf = (owner: string, headers: Record<string, string> = {}): Sent => ({
  method: "POST",
  path: "/v1/sessions/s/turns",
  headers,
  body: { input: "hi" },
  owner,
});

const served = (): Route[] => {
  const store = memorySessionStore();
  return routes({
    turns: createTurns({ agent: new Agent({ model: demoModel() }), store }),
    sessions: createSessions({ store }),
    version: "1",
    nowMs: () => 0,
  });
};

test("the requests here are all that the service has", () => {
  const known = [...READS, ...CREATES, LIST].map(
    ({ method, path }) =>
      `${method} ${path.replace(/\/s(?=\/|$)/, "/{id}").replace(/\/k(?=\/|$)/, "/{turn_id}")}`,
  );
  const all = served().map(({ method, path }) => `${method} ${path}`);
  expect(new Set([...known, "GET /ping"])).toEqual(new Set(all));
});

describe("another owner's session", () => {
  test.each(READS)(
    "answers as if there were none: $method $path $headers $query (X01)",
    async (request) => {
      const { handler } = service();
      const none = await call(handler, { ...request, owner: "bob" });
      expect(none).toMatchObject({ status: 404, json: { code: "not_found" } });
      await call(handler, turnOf("ann", { "idempotency-key": "k" }));
      const others = await call(handler, { ...request, owner: "bob" });
      expect(others).toEqual(none);
      expect((await call(handler, { method: "GET", path: "/v1/sessions/s" })).json).toMatchObject({
        version: 2,
      });
    },
  );

  test.each(CREATES)(
    "doesn't stand in the way of one's own of that id: $method $path (X01)",
    async (request) => {
      const { handler } = service();
      await call(handler, turnOf("ann", { "idempotency-key": "k" }));
      const made = await call(handler, { ...request, owner: "bob" });
      expect([200, 201]).toContain(made.status);
      expect(made.json).not.toMatchObject({ replayed: true });
      await call(handler, { method: "DELETE", path: "/v1/sessions/s", owner: "bob" });
      expect((await call(handler, { method: "GET", path: "/v1/sessions/s" })).json).toMatchObject({
        version: 2,
      });
    },
  );

  test("goes on with its turn, which nobody else can see or stop (X01)", async () => {
    const { handler, running, finish } = await busyService();
    for (const request of [oneTurn("k"), cancel("k")]) {
      const others = await call(handler, { ...request, owner: "bob" });
      expect(others).toMatchObject({ status: 404, json: { detail: "there is no session s" } });
      await call(handler, turnOf("bob"));
      const own = await call(handler, { ...request, owner: "bob" });
      expect(own.json["detail"]).toBe("there is no turn k in this session");
      await call(handler, { method: "DELETE", path: "/v1/sessions/s", owner: "bob" });
    }
    finish();
    expect(await running).toMatchObject({ status: 200, json: { version: 2 } });
  });

  test("isn't in one's list, and neither is one's own in theirs (X01)", async () => {
    const { handler } = service();
    await call(handler, turnOf("ann"));
    const none = { data: [], has_more: false, next_cursor: null };
    expect((await call(handler, { ...LIST, owner: "bob" })).json).toEqual(none);
    await call(handler, turnOf("bob", { "idempotency-key": "k" }));
    for (const owner of ["ann", "bob"]) {
      expect((await call(handler, { ...LIST, owner })).json["data"]).toEqual([
        (await call(handler, { method: "GET", path: "/v1/sessions/s", owner })).json,
      ]);
    }
  });

  test("shows nothing through If-Match, a turn id or a cursor (X01)", async () => {
    const { handler } = service();
    await call(handler, turnOf("ann", { "idempotency-key": "k" }));
    const page = { method: "GET", path: "/v1/sessions/s/messages", query: { limit: "1" } };
    const cursor = String((await call(handler, page)).json["next_cursor"]);
    const matched = await call(handler, turnOf("bob", { "if-match": '"2"' }));
    expect(matched.json["detail"]).toBe("there is no such session yet");
    const own = await call(handler, turnOf("bob", { "idempotency-key": "k" }));
    expect(own.json).toMatchObject({ replayed: false, version: 2 });
    expect((await call(handler, { ...page, query: { cursor }, owner: "bob" })).status).toBe(400);
  });

  test.each([
    ["a#b", "a%23b"],
    ["a", "A"],
    ["a", "a "],
    ["caf\u00e9", "cafe\u0301"],
    ["tenant/a", "tenant%2Fa"],
    ["a\u0000", "a"],
  ])("is never met through a similar name: %j and %j (S13)", async (one, other) => {
    const { handler } = service();
    await call(handler, turnOf(one));
    expect(
      (await call(handler, { method: "GET", path: "/v1/sessions/s", owner: other })).status,
    ).toBe(404);
    expect(
      (await call(handler, { method: "GET", path: "/v1/sessions/s", owner: one })).status,
    ).toBe(200);
  });

  test("is never met through a name too long for a key (S13)", async () => {
    const { handler } = service();
    const refused = await call(handler, turnOf("o".repeat(2049)));
    expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "owner" }] } });
    expect((await call(handler, turnOf("o".repeat(512)))).status).toBe(200);
  });
});

describe("a caller without an identity", () => {
  test.each([...READS, ...CREATES, LIST])(
    "gets 401, session or not: $method $path $headers $query (X01)",
    async (request) => {
      const { handler, model } = service();
      const none = await call(handler, { ...request, owner: null });
      expect(none).toMatchObject({ status: 401, json: { code: "unauthorized" } });
      await call(handler, turnOf("ann"));
      expect(await call(handler, { ...request, owner: null })).toEqual(none);
      expect(model.calls).toHaveLength(1);
    },
  );

  test.each([
    ["no request context", undefined],
    ["an empty one", {}],
    ["nulls in it", { authorizer: null, identity: null }],
    ["an empty owner", { authorizer: { owner: "" } }],
    ["an owner that isn't text", { authorizer: { owner: { name: "ann" } } }],
    ["claims without an owner", { authorizer: { principalId: "ann" } }],
    ["an empty ARN", { identity: { userArn: "" } }],
    ["an inherited owner", { authorizer: {}, owner: "ann" }],
  ])("is one with %s", async (_, requestContext) => {
    const { handler } = service();
    const event = { ...proxyEvent({ method: "GET", path: "/v1/sessions/s" }), requestContext };
    expect((await invoke(handler, event)).status).toBe(401);
  });
});

describe("under IAM authorization", () => {
  const ROLE = "arn:aws:sts::123456789012:assumed-role/app";
  const make = { method: "POST", path: "/v1/sessions/s/turns", body: { input: "hi" } };
  const sees = async (maker: Sent["identity"], reader: Sent["identity"]): Promise<boolean> => {
    const { handler } = service();
    expect((await call(handler, { ...make, ...identity(maker) })).status).toBe(200);
    const read = await call(handler, {
      method: "GET",
      path: "/v1/sessions/s",
      ...identity(reader),
    });
    expect([200, 404]).toContain(read.status);
    return read.status === 200;
  };

  test.each([
    ["a user", "arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:user/ann"],
    ["a role, whatever its session's name", `${ROLE}/i-0a1b`, `${ROLE}/i-9c8d`],
    ["a role whose session's name holds a slash", `${ROLE}/a/b`, `${ROLE}/c`],
    [
      "a role in another partition",
      `${ROLE.replace("aws", "aws-us-gov")}/a`,
      `${ROLE.replace("aws", "aws-us-gov")}/b`,
    ],
  ])("the owner is %s", async (_, maker, reader) => {
    expect(await sees({ userArn: maker }, { userArn: reader })).toBe(true);
  });

  test.each([
    ["users", "arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:user/bob"],
    [
      "users in folders",
      "arn:aws:iam::123456789012:user/a/ann",
      "arn:aws:iam::123456789012:user/b/ann",
    ],
    ["roles", `${ROLE}/x`, `${ROLE}2/x`],
    ["accounts", `${ROLE}/x`, `${ROLE.replace("1234", "9234")}/x`],
    ["a role and a user", `${ROLE}/x`, "arn:aws:iam::123456789012:user/app"],
    [
      "federated users",
      "arn:aws:sts::123456789012:federated-user/a",
      "arn:aws:sts::123456789012:federated-user/b",
    ],
  ])("two %s are two owners", async (_, maker, reader) => {
    expect(await sees({ userArn: maker }, { userArn: reader })).toBe(false);
  });

  test("two users of one identity pool, who share its role, are two owners", async () => {
    const pool = (cognitoIdentityId: string) => ({
      userArn: `${ROLE}/CognitoIdentityCredentials`,
      cognitoIdentityId,
    });
    expect(await sees(pool("us-east-1:aaaa"), pool("us-east-1:bbbb"))).toBe(false);
    expect(await sees(pool("us-east-1:aaaa"), pool("us-east-1:aaaa"))).toBe(true);
    expect(await sees(pool("us-east-1:aaaa"), { userArn: `${ROLE}/x` })).toBe(false);
  });

  test("an authorizer's owner counts before it", async () => {
    const { handler } = service();
    await call(handler, { ...make, owner: "ann", identity: { userArn: `${ROLE}/x` } });
    expect(
      (await call(handler, { method: "GET", path: "/v1/sessions/s", owner: "ann" })).status,
    ).toBe(200);
  });
});

/** No authorizer, only what IAM tells. */
const identity = (told: Sent["identity"]): Pick<Sent, "identity"> =>
  told ? { identity: told } : {};

describe("an expired session", () => {
  const expired = async (): Promise<ReturnType<typeof service>> => {
    const it = service({ lifetimeSeconds: 3600 });
    await call(it.handler, turnOf("ann", { "idempotency-key": "k" }));
    it.clock.advance(3_599_999);
    expect((await call(it.handler, { method: "GET", path: "/v1/sessions/s" })).status).toBe(200);
    it.clock.advance(1);
    return it;
  };

  test.each(READS)(
    "answers as if there were none, at once: $method $path $headers $query",
    async (request) => {
      const { handler } = await expired();
      expect(await call(handler, request)).toEqual(await call(service().handler, request));
    },
  );

  test.each(CREATES)("makes place for a new one of its id: $method $path", async (request) => {
    const { handler } = await expired();
    const body =
      request.method === "PUT" ? { ...SNAPSHOT, created_at: "2100-12-01T13:00:00Z" } : request.body;
    expect([200, 201]).toContain((await call(handler, { ...request, body })).status);
    const { json } = await call(handler, { method: "GET", path: "/v1/sessions/s" });
    expect(json["created_at"]).toMatch(/^2100-12-01T13:00:00/);
    expect(Number(json["message_count"])).toBeLessThanOrEqual(2);
  });

  test("doesn't recognise its turns, or its version, any more", async () => {
    const { handler } = await expired();
    expect((await call(handler, turnOf("ann", { "if-match": '"2"' }))).status).toBe(412);
    const again = await call(handler, turnOf("ann", { "idempotency-key": "k" }));
    expect(again.json).toMatchObject({ replayed: false, version: 2 });
  });
});
