/** How a session is stored, and what is said where it is damaged. */
import { PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { encodeHead, encodeOpen } from "../../lib/store/dynamodb/item.ts";
import { headKey, turnRecordKey } from "../../lib/store/dynamodb/keys.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { DamagedSessionError } from "../../lib/store/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { HASH, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";

/** As it is stored. */
const OPEN = encodeOpen(openTurn());

describe.each(dynamoEngines())("on $name", ({ endpoint }) => {
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
});
