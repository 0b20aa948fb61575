/** History on DynamoDB: what is large is whole, and HEAD is small. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { faultyClient } from "../support/faulty.ts";
import { doneTurn, head, NOW_MS, newKey, randomText } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { all, build, itemBytes, openHistory, turnOf } from "./histories.ts";
import { append } from "./open-turns.ts";

describe.each(dynamoEngines())("history on $name", ({ endpoint }) => {
  test("a 5 MB tool result and a 2 MB message come out as they went in, and HEAD stays small", async () => {
    const { store, another, client, tableName } = await openHistory(endpoint);
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
    expect(await itemBytes({ client, tableName }, key)).toBeLessThan(4096);
    expect(await all(another(), key)).toEqual(turns);
    expect(await all(store, key)).toEqual(turns);
  });

  test("a turn with a 2 MB message, under a raised limit, and a 5 MB tool result is run, restored and replayed", async () => {
    const { store, another } = await openHistory(endpoint);
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
    const { store, another, client, tableName } = await openHistory(endpoint);
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
      seen.push(await itemBytes({ client, tableName }, key));
    }
    expect(Math.max(...seen)).toBeLessThan(4096);
    expect(await all(another(), key)).toEqual(turns);
  });

  // Text of three bytes a character, so that a cut in the wrong place would show.
  test.each([-2, -1, 0, 1, 2])(
    "a turn whose parts end %i bytes off a boundary is exact",
    async (offset) => {
      const { store, another } = await openHistory(endpoint);
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
});
