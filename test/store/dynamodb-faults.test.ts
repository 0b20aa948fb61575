/** What is done, and told, where the network or the table fails. */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { StoreThrottledError, StoreUnavailableError } from "../../lib/store/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { type Fault, faultyClient, type SentRequest } from "../support/faulty.ts";
import { claimOn, head, hex, NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";

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
