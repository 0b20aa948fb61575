/** History on DynamoDB that is damaged, gone, or more than a process should hold. */
import { DeleteCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { segmentKey } from "../../lib/store/dynamodb/keys.ts";
import { DamagedSessionError, SessionTooLargeError } from "../../lib/store/errors.ts";
import { partitionKey } from "../../lib/store/keys.ts";
import { SessionNotFoundError } from "../../lib/turns/errors.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines } from "../support/dynamodb.ts";
import { NOW_MS } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { build, openHistory, turnsOf } from "./histories.ts";
import { headOf } from "./open-turns.ts";

describe.each(dynamoEngines())("history on $name", ({ endpoint }) => {
  test("a missing segment is a typed error that names it; the turn isn't run, and nothing is written over it", async () => {
    const { store, another, client, tableName } = await openHistory(endpoint);
    const key = await build(store, turnsOf(9, 1700));
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
    const { store, another, client, tableName } = await openHistory(endpoint);
    const key = await build(store, turnsOf(5, 1700));
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
    const { store, another } = await openHistory(endpoint);
    const key = await build(store, turnsOf(9, 1700));
    const sessions = createSessions({ store: another(), clock: settableClock(NOW_MS) });
    const it = await sessions.read(key);
    await sessions.delete(key);
    await expect(sessions.export(it)).rejects.toThrow(SessionNotFoundError);
    await expect(sessions.messages(it)).rejects.toThrow(SessionNotFoundError);
  });

  test("more history than a process should hold is refused before the model is called, and the session freed", async () => {
    const { store } = await openHistory(endpoint);
    const key = await build(store, turnsOf(5, 1700));
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
});
