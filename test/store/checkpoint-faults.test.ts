/** What a turn keeps and leaves, with the network failing under each of the writes that do it. */
import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { type Effect, tool } from "../../lib/agent/tool.ts";
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { StoreUnavailableError } from "../../lib/store/errors.ts";
import type { Head } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { Clock } from "../../lib/turns/clock.ts";
import { TurnNotFoundError, TurnSupersededError } from "../../lib/turns/errors.ts";
import { requestHash } from "../../lib/turns/request.ts";
import { createTurns } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";
import { type Fault, faultyClient, type SentRequest } from "../support/faulty.ts";
import { NOW_MS, newKey, openTurn } from "../support/heads.ts";
import { scriptedModel } from "../support/models.ts";
import { headOf, keep, keyOf, noise, running, step } from "./open-turns.ts";

type Kind = (request: SentRequest) => boolean;

const isSteps: Kind = ({ body }) => body.includes("list_append");
const isResults: Kind = ({ body }) => body.includes("#results = :kept");
const isPiece: Kind = ({ operation, body }) => operation === "PutItem" && body.includes('"O#');
const isPart: Kind = ({ operation, body }) => operation === "PutItem" && body.includes('"P#');
const isTakeOver: Kind = ({ body }) =>
  body.includes(":seen_fence") && body.includes("#claim = :claim");
const isDisplace: Kind = ({ body }) =>
  body.includes(":seen_fence") && body.includes("REMOVE #claim, #open");

const FAULTS: Fault[] = ["answer lost", "sent twice", "not sent"];

const under = (kinds: Readonly<Record<string, Kind>>) =>
  Object.entries(kinds).flatMap(([kind, isKind]) =>
    FAULTS.map((fault) => ({ kind, fault, isKind })),
  );

describe.each(dynamoEngines())("on $name", ({ endpoint }) => {
  /** The first request of that kind meets the fault. */
  const start = async (fault: Fault, isKind: Kind) => {
    const { tableName } = await freshTable(endpoint);
    const { client, sent } = faultyClient(endpoint, (request, before) =>
      isKind(request) && !before.some(isKind) ? fault : undefined,
    );
    const expectFaulted = () =>
      expect(sent.filter(isKind).length).toBeGreaterThan(fault === "sent twice" ? 0 : 1);
    return { store: dynamoSessionStore({ client, tableName }), expectFaulted };
  };

  test.each(under({ isSteps, isResults, isPiece }))(
    "a turn whose checkpoint meets a fault is done, and its tool has run once: $kind, $fault",
    async ({ fault, isKind }) => {
      const { store, expectFaulted } = await start(fault, isKind);
      const { agent, model, runs } = looking("once");
      const key = newKey();
      const result = await createTurns({ agent, store }).run({ ...key, turnId: "k", input: "Hi" });
      expect(result).toMatchObject({ version: 2, replayed: false, messages: MESSAGES });
      expect(runs).toHaveLength(1);
      expect(model.calls).toHaveLength(2);
      expectFaulted();
      const after = await headOf(store, key);
      expect(after).toMatchObject({ version: 2, fence: 1 });
      expect(after).not.toHaveProperty("claim");
      expect(after).not.toHaveProperty("open");
    },
  );

  test("a checkpoint whose every answer is lost is unknown: no tool runs, and the next try runs it once", async () => {
    const { tableName } = await freshTable(endpoint);
    let isBroken = true;
    const { client } = faultyClient(endpoint, (request) =>
      isBroken && isSteps(request) ? "answer lost" : undefined,
    );
    const store = dynamoSessionStore({ client, tableName });
    const { agent, model, runs } = looking("idempotent");
    const clock = settableClock(NOW_MS);
    const turns = createTurns({ agent, store, clock });
    const request = { ...newKey(), turnId: "k", input: "Hi" };
    await expect(turns.run(request)).rejects.toThrow(StoreUnavailableError);
    expect(runs).toEqual([]);
    expect(await headOf(store, request)).toMatchObject({
      version: 1,
      open: { turnId: "k", steps: 1, revision: 1 },
    });
    isBroken = false;
    clock.advance(60_000);
    expect(await turns.run(request)).toMatchObject({ version: 2, messages: MESSAGES });
    expect(runs).toHaveLength(1);
    expect(model.calls).toHaveLength(2);
  });

  /** Its runner has kept a step, and is heard of no more. */
  const left = async (store: SessionStore, turnId: string): Promise<Head> => {
    const open = openTurn({ turnId, input: "Hi", requestHash: requestHash({ input: "Hi" }) });
    return keep(store, await running(store, {}, { open }), { steps: [step(noise(9000))] });
  };
  const answering = (store: SessionStore, clock: Clock) =>
    createTurns({
      agent: new Agent({ model: scriptedModel([assistantMessage("done")]) }),
      store,
      clock,
    });

  test.each(FAULTS)(
    "a turn that is taken over is recorded, and isn't run again: %s",
    async (fault) => {
      const { store, expectFaulted } = await start(fault, isTakeOver);
      const seen = await left(store, "k");
      const turns = answering(store, settableClock(NOW_MS + 90_000));
      const key = keyOf(seen);
      const result = await turns.run({ ...key, turnId: "next", input: "Go on" });
      expect(result).toMatchObject({ final: "done", version: 2, replayed: false });
      expectFaulted();
      const after = await headOf(store, key);
      expect(after).toMatchObject({ version: 2, fence: 2, counts: { turns: 1 } });
      expect(after.recent.get(turnKey("k"))).toMatchObject({ outcome: "abandoned", version: 1 });
      await expect(turns.run({ ...key, turnId: "k", input: "Hi" })).rejects.toThrow(
        TurnSupersededError,
      );
    },
  );

  test.each(under({ isTakeOver, isPart }))(
    "a turn that is interrupted stands in the history once: $kind, $fault",
    async ({ fault, isKind }) => {
      const { store, expectFaulted } = await start(fault, isKind);
      const seen = await left(store, "k");
      const turns = answering(store, settableClock(NOW_MS));
      const key = keyOf(seen);
      const request = { ...key, turnId: "next", input: "Go on", onBusy: "interrupt" as const };
      expect(await turns.run(request)).toMatchObject({ final: "done", version: 3 });
      expectFaulted();
      const after = await headOf(store, key);
      expect(after).toMatchObject({ version: 3, fence: 2, counts: { turns: 2 } });
      expect(after.recent.get(turnKey("k"))).toMatchObject({ outcome: "interrupted", version: 1 });
      const history = await store.turns(after, { from: 1, to: 3 });
      expect(history).toMatchObject([
        { turnId: "k", finish: "interrupted" },
        { turnId: "next", finish: "final" },
      ]);
      expect(history[0]?.messages.map(({ content }) => content)).toEqual([
        "Hi",
        "I look",
        noise(9000),
        "(interrupted)",
      ]);
    },
  );

  test.each(["k", "~own"].flatMap((turnId) => FAULTS.map((fault) => ({ turnId, fault }))))(
    "a cancelled turn is ended, and its session free: $turnId, $fault",
    async ({ turnId, fault }) => {
      const { store, expectFaulted } = await start(fault, isDisplace);
      const seen = await left(store, turnId);
      const turns = answering(store, settableClock(NOW_MS));
      const key = keyOf(seen);
      await turns.cancel({ ...key, turnId });
      expectFaulted();
      const after = await headOf(store, key);
      expect(after).not.toHaveProperty("claim");
      expect(after).not.toHaveProperty("open");
      expect([...after.recent.keys()]).toEqual(turnId === "k" ? [turnKey("k")] : []);
      if (turnId === "k") {
        await turns.cancel({ ...key, turnId });
        await expect(turns.run({ ...key, turnId, input: "Hi" })).rejects.toThrow(
          TurnSupersededError,
        );
      } else {
        await expect(turns.cancel({ ...key, turnId })).rejects.toThrow(TurnNotFoundError);
      }
      expect(await turns.run({ ...key, input: "Go on" })).toMatchObject({ version: 2 });
    },
  );
});

const CALL = assistantMessage("", [{ id: "a", name: "look", arguments: {} }]);

/** Of a turn of `looking`. */
const MESSAGES = [userMessage("Hi"), CALL, toolMessage("a", noise(9000)), assistantMessage("done")];

/** An agent that uses one tool, and the runs of that tool. */
const looking = (effect: Effect) => {
  const runs: string[] = [];
  const look = tool({
    name: "look",
    description: "",
    parameters: { type: "object" },
    effect,
    run: (_args, { idempotencyKey }) => {
      runs.push(idempotencyKey);
      return noise(9000);
    },
  });
  const model = scriptedModel([CALL, assistantMessage("done")]);
  return { agent: new Agent({ model, tools: [look] }), model, runs };
};
