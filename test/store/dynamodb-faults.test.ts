import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";
import { encodeHead, encodeOpen } from "../../lib/store/dynamodb/item.ts";
import { headKey, turnRecordKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import {
  DamagedSessionError,
  StoreThrottledError,
  StoreUnavailableError,
} from "../../lib/store/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { type Fault, faultyClient, type SentRequest } from "../support/faulty.ts";
import { claimOn, HASH, head, hex, NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";

/** As it is stored. */
const OPEN = encodeOpen(openTurn());

const KEYS = { region: "us-east-1", credentials: { accessKeyId: "test", secretAccessKey: "test" } };

describe.each(dynamoEngines())("on $name", ({ endpoint }) => {
  /** The first request of that kind meets the fault. */
  const start = async (fault: Fault, isKind: (request: SentRequest) => boolean) => {
    const { tableName, client: direct } = await freshTable(endpoint);
    const { client, sent } = faultyClient(endpoint, (request, before) =>
      isKind(request) && !before.some(isKind) ? fault : undefined,
    );
    const store = dynamoSessionStore({ client, tableName });
    const model = scriptedModel([
      assistantMessage("one"),
      assistantMessage("two"),
      assistantMessage("three"),
    ]);
    return {
      model,
      sent,
      direct,
      tableName,
      store,
      sessions: createSessions({ store }),
      turns: createTurns({ agent: new Agent({ model }), store }),
    };
  };

  const isCreate = ({ operation }: SentRequest) => operation === "PutItem";
  const isCommit = ({ body }: SentRequest) => body.includes("#version = #version + :one");
  const isClaim = ({ body }: SentRequest) => body.includes("if_not_exists");
  const isRelease = ({ body }: SentRequest) => body.includes('"REMOVE #claim, #open"');
  const isDelete = ({ body }: SentRequest) => body.includes("#deleted_at = :now");
  const kinds = { isCreate, isClaim, isCommit };
  const faults: Fault[] = ["answer lost", "sent twice", "not sent"];

  test.each(
    Object.entries(kinds).flatMap(([kind, isKind]) =>
      faults.map((fault) => ({ kind, fault, isKind })),
    ),
  )(
    "a turn whose write is met by a fault is done, once, and told so: $kind, $fault",
    async ({ fault, isKind }) => {
      const { turns, model, sent, store } = await start(fault, isKind);
      const key = newKey();
      const first = await turns.run({ ...key, turnId: "a", input: "Hi" });
      const second = await turns.run({ ...key, turnId: "b", input: "again" });
      expect([first, second]).toMatchObject([
        { final: "one", version: 2, replayed: false },
        { final: "two", version: 3, replayed: false },
      ]);
      expect(sent.filter(isKind).length).toBeGreaterThan(fault === "sent twice" ? 0 : 1);
      expect(model.calls).toHaveLength(2);
      const it = await store.read(key);
      expect(it).toMatchObject({ version: 3, fence: 2, counts: { turns: 2 } });
      expect(it).not.toHaveProperty("claim");
    },
  );

  test.each(faults)("a session's creation and deletion are done once: %s", async (fault) => {
    const created = await start(fault, isCreate);
    const key = newKey();
    expect(await created.sessions.create(key)).toMatchObject({ version: 1 });

    const deleted = await start(fault, isDelete);
    await deleted.sessions.create(key);
    await deleted.sessions.delete(key);
    await expect(deleted.sessions.read(key)).rejects.toThrow("there is no session");
  });

  test.each(faults)("a claim taken over is one's own: %s", async (fault) => {
    const isTakeOver = ({ body }: SentRequest) => body.includes(":seen_fence");
    const { model, store, sent } = await start(fault, isTakeOver);
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    await store.claim(claimOn(key, { open: openTurn({ turnId: "dead" }) }));
    const clock = settableClock(NOW_MS + 60_000);
    const turns = createTurns({ agent: new Agent({ model }), store, clock });
    expect(await turns.run({ ...key, input: "Hi" })).toMatchObject({ final: "one", version: 2 });
    expect(sent.some(isTakeOver)).toBe(true);
    expect(await store.read(key)).toMatchObject({ fence: 2, version: 2 });
  });

  test.each(faults)("a release frees the session: %s", async (fault) => {
    const { tableName, client: direct } = await freshTable(endpoint);
    let faulted = false;
    const { client } = faultyClient(endpoint, (request) => {
      if (faulted || !isRelease(request)) return undefined;
      faulted = true;
      return fault;
    });
    const model = scriptedModel([new Error("overloaded"), assistantMessage("two")]);
    const turns = createTurns({
      agent: new Agent({ model }),
      store: dynamoSessionStore({ client, tableName }),
    });
    const key = newKey();
    await expect(turns.run({ ...key, input: "Hi" })).rejects.toThrow("overloaded");
    expect(faulted).toBe(true);
    const after = await dynamoSessionStore({ client: direct, tableName }).read(key);
    expect(after).not.toHaveProperty("claim");
    expect(await turns.run({ ...key, input: "Hi" })).toMatchObject({ final: "two" });
  });

  test("a commit whose every answer is lost is unknown to its caller; the same turn id then gets its result", async () => {
    const { tableName } = await freshTable(endpoint);
    let isBroken = true;
    const { client } = faultyClient(endpoint, (request) =>
      isBroken && isCommit(request) ? "answer lost" : undefined,
    );
    const model = scriptedModel([assistantMessage("one")]);
    const turns = createTurns({
      agent: new Agent({ model }),
      store: dynamoSessionStore({ client, tableName }),
    });
    const key = newKey();
    await expect(turns.run({ ...key, turnId: "k", input: "Hi" })).rejects.toThrow(
      StoreUnavailableError,
    );
    isBroken = false;
    const result = await turns.run({ ...key, turnId: "k", input: "Hi" });
    expect(result).toMatchObject({ final: "one", version: 2, replayed: true });
    expect(model.calls).toHaveLength(1);
  });

  test("S02: sockets that died in a freeze are replaced, for reading and for writing", async () => {
    const { tableName } = await freshTable(endpoint);
    const { client } = faultyClient(endpoint, (_request, before) =>
      before.length % 3 < 2 ? "not sent" : undefined,
    );
    const store = dynamoSessionStore({ client, tableName });
    const it = head();
    expect(await store.create({ head: it, nowMs: NOW_MS })).toEqual({ applied: true });
    expect(await store.read(it)).toEqual(it);
  });

  test("T01: the expiry is stored as a whole number of seconds, and every key of both indexes is there", async () => {
    const { tableName, client } = await freshTable(endpoint);
    const sessions = createSessions({
      store: dynamoSessionStore({ client, tableName }),
      clock: { nowMs: () => NOW_MS, monotonicMs: () => NOW_MS, sleep: async () => {} },
    });
    const snapshot = {
      session_id: "s",
      created_at: "2100-11-30T23:59:59.999999-01:30",
      metadata: {},
      messages: [],
    };
    await sessions.import({ owner: "ann", sessionId: "s" }, snapshot);
    const { Attributes: item } = await client.send(
      new UpdateCommand({
        TableName: tableName,
        Key: headKey({ owner: "ann", sessionId: "s" }),
        ReturnValues: "ALL_NEW",
      }),
    );
    expect(item).toMatchObject({
      expires_at: Date.UTC(2100, 11, 1, 1, 29, 59) / 1000 + 30 * 86_400,
      owner: "ann",
      created_key: "2100-12-01T01:29:59.999Z#s",
      created_at: snapshot.created_at,
      expiry_shard: expect.any(Number),
    });
  });

  const damages: [string, Record<string, unknown>, RegExp][] = [
    ["cut JSON", { tail: '[{"turn_id":"a"' }, /JSON/],
    [
      "a turn without messages",
      { tail: '[{"turn_id":"a","started_at":"","finished_at":"","finish":"final","usage":[0,0]}]' },
      /turns\[0\]\.messages/,
    ],
    [
      "an unknown role",
      {
        tail: '[{"turn_id":"a","started_at":"","finished_at":"","finish":"final","usage":[0,0],"messages":[{"role":"robot","content":""}]}]',
      },
      /turns\[0\]\.messages\[0\]\.role/,
    ],
    ["a version as text (K04)", { version: "10" }, /version: must be a number/],
    [
      "a number that is none of ours (C06)",
      { recent: { k: { a: 5, v: 1, h: new Uint8Array() } } },
      /recent\.k\.a:/,
    ],
    [
      "an outcome that is none",
      { recent: { k: { a: new Uint8Array(), v: 1, h: new Uint8Array(), o: "gone" } } },
      /recent\.k\.o: must be interrupted or abandoned/,
    ],
    [
      "an outcome of another kind",
      { recent: { k: { a: new Uint8Array(), v: 1, h: new Uint8Array(), o: 1 } } },
      /recent\.k\.o: must be interrupted or abandoned, not a number/,
    ],
    ["an open turn that is none", { open: "turn" }, /open: must be a map/],
    ["an open turn without an id", { open: { ...OPEN, t: null } }, /open\.t: must be text/],
    ["an open turn without a hash", { open: { ...OPEN, h: "0123" } }, /open\.h: must be bytes/],
    [
      "an open turn without input",
      { open: { ...OPEN, i: null } },
      /open\.i: must be text or bytes/,
    ],
    [
      "an open turn without a beginning",
      { open: { ...OPEN, s: "now" } },
      /open\.s: must be a number/,
    ],
    ["steps that are no list", { open: { ...OPEN, k: {} } }, /open\.k: must be a list/],
    ["a revision as text", { open: { ...OPEN, r: "1" } }, /open\.r: must be a number/],
    ["a claim without a turn", { claim: { a: new Uint8Array(), u: 1 } }, /claim\.t: must be text/],
    ["metadata that is no object", { metadata: "[]" }, /metadata/],
    ["a newer format", { format: 2 }, /format: is 2/],
    ["no history at all", { tail: null }, /tail/],
    ["an unknown encoding", { tail: Uint8Array.of(9, 1, 2) }, /tail: has the unknown encoding 9/],
    ["bytes cut short", { tail: Uint8Array.of(1, 139, 2) }, /tail: can't be decompressed/],
  ];
  test.each(damages)(
    "C16: %s is a typed error that names session and place, and nothing is written over it",
    async (_what, fields, place) => {
      const { tableName, client } = await freshTable(endpoint);
      const store = dynamoSessionStore({ client, tableName });
      const item = {
        ...encodeHead(head({ expiresAtSeconds: Math.floor(Date.now() / 1000) + 3600 })),
        ...fields,
      };
      await client.send(new PutCommand({ TableName: tableName, Item: item }));
      const key = { owner: "ann", sessionId: String(item["session_id"]) };
      await expect(store.read(key)).rejects.toThrow(DamagedSessionError);
      await expect(store.read(key)).rejects.toThrow(place);
      await expect(store.read(key)).rejects.toThrow(`session ${key.sessionId}`);
      const model = scriptedModel([assistantMessage("no")]);
      await expect(
        createTurns({ agent: new Agent({ model }), store }).run({ ...key, input: "Hi" }),
      ).rejects.toThrow(DamagedSessionError);
      expect(model.calls).toHaveLength(0);
    },
  );

  test("a record without an outcome is one of a turn that is done", async () => {
    const { tableName, client } = await freshTable(endpoint);
    const store = dynamoSessionStore({ client, tableName });
    const it = head();
    const place = { key: it, incarnation: it.incarnation };
    const bare = { a: Buffer.from(hex(), "hex"), v: 3, h: Buffer.from(HASH, "hex") };
    const done = {
      attempt: bare.a.toString("hex"),
      version: 3,
      requestHash: HASH,
      outcome: "done",
    };
    const put = (Item: Record<string, unknown>) =>
      client.send(new PutCommand({ TableName: tableName, Item }));
    await put({ ...encodeHead(it), recent: { k: bare } });
    expect((await store.read(it))?.recent).toEqual(new Map([["k", done]]));
    await put({ ...turnRecordKey(place, "k"), ...bare });
    expect(await store.findTurn(place, "k")).toEqual(done);

    await put({ ...turnRecordKey(place, "k"), ...bare, o: "interrupted" });
    expect(await store.findTurn(place, "k")).toEqual({ ...done, outcome: "interrupted" });
    await put({ ...turnRecordKey(place, "k"), ...bare, o: "gone" });
    const damaged = store.findTurn(place, "k");
    await expect(damaged).rejects.toThrow(DamagedSessionError);
    await expect(damaged).rejects.toThrow(
      `session ${it.sessionId}, a turn's record: o: must be interrupted or abandoned`,
    );
  });

  test("a number of 17 digits from another writer doesn't slip in rounded (C06)", async () => {
    const { tableName, client } = await freshTable(endpoint);
    const store = dynamoSessionStore({ client, tableName });
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const { PutItemCommand, GetItemCommand } = await import("@aws-sdk/client-dynamodb");
    const { marshall } = await import("@aws-sdk/util-dynamodb");
    const Key = marshall(headKey(it));
    const { Item = {} } = await client.send(new GetItemCommand({ TableName: tableName, Key }));
    await client.send(
      new PutItemCommand({
        TableName: tableName,
        Item: { ...Item, fence: { N: "9007199254740993.5" } },
      }),
    );
    await expect(store.read(it)).rejects.toThrow(DamagedSessionError);
  });

  test("a table that isn't there is a mistake to be told, not an outage", async () => {
    const { client } = await freshTable(endpoint);
    const store = dynamoSessionStore({ client, tableName: `none-${hex()}` });
    await expect(store.read(newKey())).rejects.toMatchObject({
      name: "StoreRefusedError",
      cause: { name: "ResourceNotFoundException" },
    });
  });
});

describe("a table that doesn't answer", () => {
  test("S03: accepting and silent, it is a typed error within the store's own time", async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => sockets.add(socket)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const client = dynamoClient({ ...KEYS, endpoint: `http://127.0.0.1:${port}` });
    const store = dynamoSessionStore({ client, tableName: "t" });
    const raced = await Promise.race([
      store.claim(claimOn(newKey())).catch((error: unknown) => error),
      sleep(15_000, "no answer before the function's deadline"),
    ]);
    expect(raced).toBeInstanceOf(StoreUnavailableError);
    expect(sockets.size).toBe(3);
    client.destroy();
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  test("with nobody listening, it is the same", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    server.close();
    await once(server, "close");
    const client = dynamoClient({ ...KEYS, endpoint: `http://127.0.0.1:${port}` });
    const failure = dynamoSessionStore({ client, tableName: "t" }).read(newKey());
    await expect(failure).rejects.toThrow(StoreUnavailableError);
    await expect(failure).rejects.toHaveProperty("cause.code", "ECONNREFUSED");
    client.destroy();
  });

  test.each([
    ["ProvisionedThroughputExceededException", 400, StoreThrottledError],
    ["ThrottlingException", 400, StoreThrottledError],
    ["RequestLimitExceeded", 400, StoreThrottledError],
    ["InternalServerError", 500, StoreUnavailableError],
    ["ServiceUnavailable", 503, StoreUnavailableError],
  ])("S11: %s is told apart", async (type, status, expected) => {
    const { createServer: createHttpServer } = await import("node:http");
    const server = createHttpServer((_request, response) => {
      response.writeHead(status, { "content-type": "application/x-amz-json-1.0" });
      response.end(
        JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: "no" }),
      );
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address ? address.port : 0;
    const client = dynamoClient({ ...KEYS, endpoint: `http://127.0.0.1:${port}` });
    const failure = dynamoSessionStore({ client, tableName: "t" }).read(newKey());
    await expect(failure).rejects.toMatchObject({ name: expected.name });
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
});
