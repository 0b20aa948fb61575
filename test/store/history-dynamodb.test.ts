/** History on DynamoDB: its sizes, its cache, and what is wrong with it. */
import { randomBytes } from "node:crypto";
import {
  DeleteCommand,
  type DynamoDBDocumentClient,
  GetCommand,
  QueryCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import { headKey, segmentKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { DamagedSessionError, SessionTooLargeError } from "../../lib/store/errors.ts";
import { partitionKey } from "../../lib/store/keys.ts";
import type { Head, SessionKey, SessionStore } from "../../lib/store/store.ts";
import { SessionNotFoundError } from "../../lib/turns/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { claimOn, commitOf, doneTurn, head, NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { sizeOf } from "./item-size.ts";

describe.each(dynamoEngines())("history on $name", ({ endpoint }) => {
  const open = async (cacheBytes?: number) => {
    const { client, tableName } = await freshTable(endpoint);
    const { client: counted, sent } = faultyClient(endpoint, () => undefined);
    const options = { tableName, ...(cacheBytes === undefined ? {} : { cacheBytes }) };
    const another = () => dynamoSessionStore({ client: counted, ...options });
    return { store: another(), another, sent, client, tableName };
  };

  /** A session with these turns, sealed as a runner seals. */
  const build = async (store: SessionStore, turns: readonly DoneTurn[]): Promise<SessionKey> => {
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    for (const turn of turns) await append(store, key, turn);
    return key;
  };
  const append = async (store: SessionStore, key: SessionKey, turn: DoneTurn): Promise<void> => {
    const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
    if (!claimed.applied) throw new Error("the claim was refused");
    const sealed = await store.seal(claimed.head);
    expect(await store.commit(commitOf(claimed.head, { turn, sealed }))).toEqual({ applied: true });
  };
  const headOf = async (store: SessionStore, key: SessionKey): Promise<Head> => {
    const it = await store.read(key);
    if (!it) throw new Error("there is no session");
    return it;
  };
  const all = async (store: SessionStore, key: SessionKey): Promise<DoneTurn[]> => {
    const it = await headOf(store, key);
    return store.turns(it, { from: 1, to: it.version });
  };
  const itemBytes = async (
    client: DynamoDBDocumentClient,
    tableName: string,
    key: SessionKey,
  ): Promise<number> => {
    const { Item: item = {} } = await client.send(
      new GetCommand({ TableName: tableName, Key: headKey(key) }),
    );
    return sizeOf(item);
  };

  test("a 5 MB tool result and a 2 MB message come out as they went in, and HEAD stays small", async () => {
    const { store, another, client, tableName } = await open();
    const huge = randomText(5_000_000);
    const turns = [
      turnOf(1, 100),
      doneTurn({
        turnId: "t2",
        messages: [
          userMessage("语".repeat(700_000)),
          assistantMessage("", [{ id: "a", name: "fetch", arguments: {} }]),
          toolMessage("a", huge),
          assistantMessage("done"),
        ],
      }),
      turnOf(3, 100),
      turnOf(4, 3000),
    ];
    const key = await build(store, turns);
    expect(await itemBytes(client, tableName, key)).toBeLessThan(4096);
    expect(await all(another(), key)).toEqual(turns);
    expect(await all(store, key)).toEqual(turns);
  });

  test("a turn with a 2 MB message, under a raised limit, and a 5 MB tool result is run, restored and replayed", async () => {
    const { store, another } = await open();
    const huge = randomText(5_000_000);
    const fetched = tool({
      name: "fetch",
      description: "",
      parameters: { type: "object" },
      run: () => huge,
    });
    const call = assistantMessage("", [{ id: "a", name: "fetch", arguments: {} }]);
    const model = scriptedModel([call, assistantMessage("done"), assistantMessage("again")]);
    const start = (over: SessionStore) =>
      createTurns({
        agent: new Agent({ model, tools: [fetched] }),
        store: over,
        maxInputBytes: 3_000_000,
      });
    const key = newKey();
    const input = "语".repeat(700_000);
    const first = await start(store).run({ ...key, turnId: "k", input });
    expect(first.messages.map(({ content }) => content)).toEqual([input, "", huge, "done"]);
    await start(another()).run({ ...key, input: "go on" });
    expect(model.calls[2]?.messages.map(({ content }) => content)).toEqual([
      input,
      "",
      huge,
      "done",
      "go on",
    ]);
    expect(await start(another()).run({ ...key, turnId: "k", input })).toEqual({
      ...first,
      replayed: true,
    });
  });

  test("the parts of a turn are written four at a time", async () => {
    const { tableName } = await freshTable(endpoint);
    const { client, sent } = faultyClient(endpoint, () => undefined);
    let open = 0;
    let most = 0;
    client.middlewareStack.add(
      (next) => async (args) => {
        most = Math.max(most, ++open);
        return next(args).finally(() => open--);
      },
      { step: "initialize" },
    );
    await build(dynamoSessionStore({ client, tableName }), [turnOf(1, 5_000_000)]);
    expect(sent.filter(({ body }) => body.includes('"P#')).length).toBeGreaterThan(8);
    expect(most).toBe(4);
  });

  test("HEAD stays under 4 KB whatever the sizes of turns, and every turn is there", async () => {
    const { store, another, client, tableName } = await open();
    const sizes = [
      10, 50, 300, 1200, 1900, 1990, 2000, 2048, 2100, 3000, 9000, 40_000, 1, 700, 2500,
    ];
    const turns = [...sizes, ...sizes.toReversed(), ...sizes].map((size, n) => turnOf(n + 1, size));
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    const seen: number[] = [];
    for (const turn of turns) {
      await append(store, key, turn);
      seen.push(await itemBytes(client, tableName, key));
    }
    expect(Math.max(...seen)).toBeLessThan(4096);
    expect(await all(another(), key)).toEqual(turns);
  });

  // Text of three bytes a character, so that a cut in the wrong place would show.
  test.each([-2, -1, 0, 1, 2])(
    "a turn whose parts end %i bytes off a boundary is exact",
    async (offset) => {
      const { store, another } = await open();
      const partBytes = 400 * 1024 - 2500;
      for (const parts of [1, 2]) {
        const text = `${randomText(parts * partBytes + offset - 330)}${"语".repeat(30)}`;
        const key = await build(store, [
          doneTurn({ messages: [userMessage("x"), assistantMessage(text)] }),
        ]);
        expect((await all(another(), key))[0]?.messages[1]?.content).toBe(text);
      }
    },
  );

  test("a warm process reads nothing again; a cold one reads what is sealed in one request", async () => {
    const { store, another, sent } = await open();
    const turns = Array.from({ length: 12 }, (_, n) => turnOf(n + 1, 1500));
    const key = await build(store, turns);
    const it = await headOf(store, key);
    const before = sent.length;
    expect(await store.turns(it, { from: 1, to: it.version })).toEqual(turns);
    expect(await store.turns(it, { from: 4, to: 9 })).toEqual(turns.slice(3, 8));
    expect(sent.length).toBe(before);
    const cold = another();
    expect(await cold.turns(it, { from: 1, to: it.version })).toEqual(turns);
    expect(sent.length).toBe(before + 1);
    await cold.turns(it, { from: 1, to: it.version });
    expect(sent.length).toBe(before + 1);
  });

  test("a seal that comes late, of a runner that was overtaken, takes nothing away", async () => {
    const { store, another } = await open();
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    const turns = Array.from({ length: 7 }, (_, n) => turnOf(n + 1, 1700));
    const seen: Head[] = [];
    for (const turn of turns.slice(0, 5)) {
      const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
      if (!claimed.applied) throw new Error("the claim was refused");
      await store.commit(commitOf(claimed.head, { turn }));
      seen.push(await headOf(store, key));
    }
    for (const turn of turns.slice(5)) await append(store, key, turn);
    expect((await headOf(store, key)).tailFrom).toBeGreaterThan(5);
    for (const late of seen.toReversed()) await another().seal(late);
    expect(await all(another(), key)).toEqual(turns);
  });

  test("a segment that a dead runner wrote is adopted, longer or shorter than one's own", async () => {
    const { store, another } = await open();
    const it = head();
    await store.create({ head: it, nowMs: NOW_MS });
    const key = { owner: it.owner, sessionId: it.sessionId };
    const turns = Array.from({ length: 6 }, (_, n) => turnOf(n + 1, 1700));
    for (const [n, turn] of turns.entries()) {
      const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
      if (!claimed.applied) throw new Error("the claim was refused");
      if (n === 2) await another().seal(claimed.head);
      const sealed = n > 4 ? await store.seal(claimed.head) : undefined;
      if (n > 4) expect(sealed).toEqual({ to: 3 });
      await store.commit(commitOf(claimed.head, { turn, ...(sealed ? { sealed } : {}) }));
    }
    expect(await headOf(store, key)).toMatchObject({ tailFrom: 3, version: 7 });
    expect(await all(another(), key)).toEqual(turns);
  });

  test("the cache keeps to its bytes", async () => {
    const { store, sent } = await open(12_000);
    const turns = Array.from({ length: 20 }, (_, n) => turnOf(n + 1, 1500));
    const key = await build(store, turns);
    const it = await headOf(store, key);
    for (let n = 0; n < 2; n++) {
      const before = sent.length;
      expect(await store.turns(it, { from: 1, to: it.version })).toEqual(turns);
      expect(sent.length).toBeGreaterThan(before);
    }
  });

  test("a missing segment is a typed error that names it; the turn isn't run, and nothing is written over it", async () => {
    const { store, another, client, tableName } = await open();
    const key = await build(
      store,
      Array.from({ length: 9 }, (_, n) => turnOf(n + 1, 1700)),
    );
    const it = await headOf(store, key);
    const { Items: items = [] } = await client.send(
      new QueryCommand({
        TableName: tableName,
        KeyConditionExpression: "pk = :pk AND begins_with(sk, :s)",
        ExpressionAttributeValues: { ":pk": partitionKey(key), ":s": "S#" },
      }),
    );
    const second = items[1];
    if (!second) throw new Error("there are no two segments");
    await client.send(
      new DeleteCommand({ TableName: tableName, Key: { pk: second["pk"], sk: second["sk"] } }),
    );
    const model = scriptedModel([assistantMessage("no")]);
    const turns = createTurns({
      agent: new Agent({ model }),
      store: another(),
      clock: settableClock(NOW_MS),
    });
    const from = Number(String(second["sk"]).slice(-8));
    await expect(turns.run({ ...key, input: "Hi" })).rejects.toThrow(
      `session ${key.sessionId}: the segment with turn ${from} is missing`,
    );
    await expect(turns.run({ ...key, input: "Hi" })).rejects.toThrow(DamagedSessionError);
    expect(model.calls).toHaveLength(0);
    expect(await headOf(store, key)).toEqual({ ...it, fence: it.fence + 2 });
  });

  test.each([
    ["an unknown encoding", Uint8Array.of(7, 1)],
    ["bytes cut short", Uint8Array.of(1, 139)],
    ["too few turns", "[]"],
    ["no JSON", "["],
  ])("C16: a segment with %s is a typed error that names it", async (_what, data) => {
    const { store, another, client, tableName } = await open();
    const key = await build(
      store,
      Array.from({ length: 5 }, (_, n) => turnOf(n + 1, 1700)),
    );
    const it = await headOf(store, key);
    const Key = segmentKey({ key, incarnation: it.incarnation }, 1);
    await client.send(
      new UpdateCommand({
        TableName: tableName,
        Key,
        UpdateExpression: "SET #d = :d",
        ExpressionAttributeNames: { "#d": "data" },
        ExpressionAttributeValues: { ":d": data },
      }),
    );
    const read = another().turns(it, { from: 1, to: it.version });
    await expect(read).rejects.toThrow(DamagedSessionError);
    await expect(read).rejects.toThrow(`session ${key.sessionId}, segment 1`);
  });

  test("a session deleted while it is read is not found, not damaged", async () => {
    const { store, another } = await open();
    const key = await build(
      store,
      Array.from({ length: 9 }, (_, n) => turnOf(n + 1, 1700)),
    );
    const sessions = createSessions({ store: another(), clock: settableClock(NOW_MS) });
    const it = await sessions.read(key);
    await sessions.delete(key);
    await expect(sessions.export(it)).rejects.toThrow(SessionNotFoundError);
    await expect(sessions.messages(it)).rejects.toThrow(SessionNotFoundError);
  });

  test("more history than a process should hold is refused before the model is called, and the session freed", async () => {
    const { store } = await open();
    const key = await build(
      store,
      Array.from({ length: 5 }, (_, n) => turnOf(n + 1, 1700)),
    );
    const model = scriptedModel([assistantMessage("windowed")]);
    const clock = settableClock(NOW_MS);
    const whole = createTurns({ agent: new Agent({ model }), store, clock, maxHistoryBytes: 5000 });
    await expect(whole.run({ ...key, input: "Hi" })).rejects.toThrow(SessionTooLargeError);
    expect(model.calls).toHaveLength(0);
    const windowed = createTurns({
      agent: new Agent({ model, window: { turns: 2 } }),
      store,
      clock,
      maxHistoryBytes: 5000,
    });
    expect(await windowed.run({ ...key, input: "Hi" })).toMatchObject({ final: "windowed" });
  });

  test("a window reads the segments it needs, and no more", async () => {
    const { store, another, sent } = await open();
    const turns = Array.from({ length: 40 }, (_, n) => turnOf(n + 1, 1500));
    const key = await build(store, turns);
    const it = await headOf(store, key);
    const before = sent.length;
    expect(await another().turns(it, { from: 34, to: it.version })).toEqual(turns.slice(33));
    const queries = sent.slice(before).map(({ body }) => body);
    expect(queries).toHaveLength(2);
    expect(queries.some((body) => body.includes('"Limit":1'))).toBe(true);
    expect(queries.some((body) => body.includes("#00000034"))).toBe(true);
    expect(queries.some((body) => !body.includes('"Limit":1') && body.includes("#00000001"))).toBe(
      false,
    );
  });
});

test("an eventually consistent read that misses the newest segment is read again consistently", async () => {
  const [{ endpoint } = { endpoint: "" }] = dynamoEngines();
  const { client, tableName } = await freshTable(endpoint);
  const inner = dynamoSessionStore({ client, tableName });
  const it = head();
  await inner.create({ head: it, nowMs: NOW_MS });
  const key = { owner: it.owner, sessionId: it.sessionId };
  const turns = Array.from({ length: 9 }, (_, n) => turnOf(n + 1, 1700));
  for (const turn of turns) {
    const claimed = await inner.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
    if (!claimed.applied) throw new Error("the claim was refused");
    await inner.commit(commitOf(claimed.head, { turn, sealed: await inner.seal(claimed.head) }));
  }
  const reads: unknown[] = [];
  const stale = faultyClient(endpoint, () => undefined).client;
  stale.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { input } = args;
      if (!("Items" in result.output) || !Array.isArray(result.output.Items)) return result;
      const isConsistent = "ConsistentRead" in input && input.ConsistentRead === true;
      reads.push(isConsistent);
      if (!isConsistent) result.output.Items.pop();
      return result;
    },
    { step: "initialize" },
  );
  const store = dynamoSessionStore({ client: stale, tableName });
  const now = await store.read(key);
  if (!now) throw new Error("there is no session");
  expect(await store.turns(now, { from: 1, to: now.version })).toEqual(turns);
  expect(reads).toEqual([false, true]);
});

const turnOf = (n: number, bytes: number): DoneTurn =>
  doneTurn({
    turnId: `turn-${n}`,
    messages: [userMessage(`say ${n}`), assistantMessage(randomText(bytes))],
  });

/** Text that doesn't compress below three quarters of its length. */
const randomText = (bytes: number): string =>
  randomBytes(Math.ceil((bytes * 3) / 4))
    .toString("base64")
    .slice(0, bytes);
