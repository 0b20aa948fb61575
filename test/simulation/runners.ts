/** The processes that run turns, with a model and tools whose every doing is written down. */
import { unlessAborted } from "../../lib/agent/abort.ts";
import { Agent } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import { type Effect as ToolEffect, tool } from "../../lib/agent/tool.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { Table } from "../../lib/store/dynamodb/requests.ts";
import { sessionStoreOn } from "../../lib/store/dynamodb/store.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { RandomBytes } from "../../lib/turns/clock.ts";
import type { TurnRequest } from "../../lib/turns/request.ts";
import { createTurns, type Turns } from "../../lib/turns/turns.ts";
import { type Faults, faultyTable } from "./faults.ts";
import type { Delivery, Log, ModelCall } from "./log.ts";
import { LARGE, observedStore } from "./observed.ts";
import type { Process, Scheduler } from "./scheduler.ts";

export interface Runner {
  readonly process: Process;
  readonly table: Table;
  readonly store: SessionStore;
}

export interface WorldOptions {
  readonly scheduler: Scheduler;
  readonly table: Table;
  readonly log: Log;
  readonly randomBytes: RandomBytes;
  readonly lifetimeSeconds: number;
  readonly changed?: (store: SessionStore) => SessionStore;
}

/** Small, so that a few turns reach the segments. */
const MAX_TAIL_BYTES = 700;

export const startRunner = (
  { scheduler, table, changed = (store) => store }: WorldOptions,
  name: string,
  faults: Faults,
): Runner => {
  const skews = [0, -800, 800];
  const clockSkewMs = skews[scheduler.choose(SKEW_ODDS, "clock")] ?? 0;
  const process = scheduler.process(name, { clockSkewMs });
  const reached = faultyTable(table, process, faults);
  const store = sessionStoreOn(reached, { cacheBytes: 1_000_000, maxTailBytes: MAX_TAIL_BYTES });
  return { process, table: reached, store: changed(store) };
};

const SKEW_ODDS = [8, 1, 1];

/** Turns as one delivery has them run. */
export const turnsFor = (world: WorldOptions, runner: Runner, delivery: Delivery): Turns =>
  createTurns({
    agent: agentFor(world, runner.process, delivery),
    store: observedStore(runner.store, delivery, world.log),
    clock: runner.process.clock,
    randomBytes: world.randomBytes,
    lifetimeSeconds: world.lifetimeSeconds,
  });

export type Sent = Omit<TurnRequest, "owner" | "sessionId">;

const agentFor = (world: WorldOptions, process: Process, delivery: Delivery): Agent =>
  new Agent({
    model: modelFor(world, process, delivery),
    tools: EFFECTS.map((effect) => countedTool(effect, { ...world, process, delivery })),
    system: "S",
    maxSteps: 4,
  });

const EFFECTS: readonly ToolEffect[] = ["none", "idempotent", "once"];

/** Answers at once in most turns; else it asks for tools once or twice before. */
const modelFor = (
  { scheduler: { choose } }: WorldOptions,
  process: Process,
  delivery: Delivery,
): Model => ({
  complete: async (messages, _tools, { signal }) => {
    const asked = messages.findLastIndex(({ role }) => role === "user");
    const { granted } = delivery;
    const call: ModelCall = { granted, history: messages.slice(0, asked), reply: undefined };
    const name = `${delivery.name}.${delivery.modelCalls.push(call)}`;
    await unlessAborted(process.point("model"), signal);
    const mood = MOODS[choose(MOOD_ODDS, "model")];
    if (mood === "slow") await process.clock.sleep(20_000, signal);
    if (mood === "fails") throw new Error("the model is down");
    const steps = messages.slice(asked).filter(({ role }) => role === "assistant").length;
    const calls = steps < 2 ? choose(CALLS_ODDS, "calls") : 0;
    if (calls === 0) {
      call.reply = `answer ${name}`;
      return { message: assistantMessage(call.reply), usage: { inputTokens: 1, outputTokens: 1 } };
    }
    const content = choose(LARGE_ODDS, "large step") === 1 ? LARGE_TEXT : "";
    return { message: withCalls(`${name}@${steps}`, { calls, content, choose }) };
  },
});

const MOODS = ["plain", "slow", "fails"];
const MOOD_ODDS = [20, 2, 1];
const CALLS_ODDS = [10, 6, 2];
const LARGE_ODDS = [30, 1];

/** Of no use to a compressor, and so too large for HEAD. */
const LARGE_TEXT = Array.from({ length: 300 }, (_, n) => (n * 2654435761).toString(36)).join("");

const withCalls = (
  name: string,
  {
    calls: length,
    content,
    choose,
  }: {
    readonly calls: number;
    readonly content: string;
    readonly choose: Scheduler["choose"];
  },
): Message =>
  assistantMessage(
    content,
    Array.from({ length }, (_, n) => {
      const id = `${name}.${n}`;
      const effect = EFFECTS[choose(EFFECTS.length, "tool")] ?? "none";
      return { id, name: effect, arguments: { call: id, large: content !== "" } };
    }),
  );

const countedTool = (
  effect: ToolEffect,
  {
    scheduler: { choose },
    log,
    process,
    delivery,
  }: WorldOptions & {
    readonly process: Process;
    readonly delivery: Delivery;
  },
) =>
  tool({
    name: effect,
    description: "",
    parameters: { type: "object" },
    effect,
    run: async ({ call, large }: { call: string; large: boolean }, context) => {
      const { turnId, idempotencyKey: key, signal } = context;
      const isKept = log.kept.has(large ? LARGE : call);
      if (log.finished.has(call))
        log.faults.push(`${effect} ran again for ${call}, which was done`);
      log.effects.push({
        delivery,
        granted: delivery.granted,
        tool: effect,
        turnId,
        call,
        key,
        isKept,
      });
      await process.point("tool");
      if (choose(SLOW_TOOL_ODDS, "slow tool") === 1) await process.clock.sleep(40_000, signal);
      return `result ${call}`;
    },
  });

const SLOW_TOOL_ODDS = [12, 1];
