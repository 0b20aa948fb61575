/**
 * What clients and operators do in a simulated run. First everything goes wrong that can; then the
 * network is calm, and whoever has no answer yet asks once more.
 */

import { ModelFailedError } from "../../lib/agent/agent.ts";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import { sweeperOn } from "../../lib/store/dynamodb/sweep.ts";
import { StoreUnavailableError } from "../../lib/store/errors.ts";
import type { SessionKey } from "../../lib/store/head.ts";
import { partitionKey } from "../../lib/store/keys.ts";
import {
  SessionBusyError,
  SessionExistsError,
  SessionNotFoundError,
  TurnIdReusedError,
  TurnNotFoundError,
  TurnSupersededError,
  TurnTimeoutError,
} from "../../lib/turns/errors.ts";
import type { OnBusy } from "../../lib/turns/request.ts";
import { createSessions, type Sessions } from "../../lib/turns/sessions.ts";
import type { Faults } from "./faults.ts";
import type { Delivery, Outcome } from "./log.ts";
import { type Runner, type Sent, startRunner, turnsFor, type WorldOptions } from "./runners.ts";
import type { Process } from "./scheduler.ts";

export interface Story {
  readonly world: WorldOptions;
  readonly faults: Faults;
  readonly key: SessionKey;
}

/** Everyone's doings, all at once. */
export const play = (story: Story): void => {
  const { scheduler } = story.world;
  const runners = Array.from({ length: 2 + scheduler.choose(2, "runners") }, (_, n) =>
    slotOf(story, `r${n}`),
  );
  const clients = 2 + scheduler.choose(2, "clients");
  for (let n = 0; n < clients; n++) void client(story, runners, `c${n}`);
  if (scheduler.choose(OPERATOR_ODDS, "operator") === 1) void operator(story);
};

const OPERATOR_ODDS = [2, 1];

/** Where a process runs, and another one when it has died. */
interface Slot {
  current(): Runner;
}

const slotOf = ({ world, faults }: Story, name: string): Slot => {
  let runner = startRunner(world, name, faults);
  let lives = 1;
  return {
    current: () => {
      if (!runner.process.alive) runner = startRunner(world, `${name}'${++lives}`, faults);
      return runner;
    },
  };
};

/** Two clients may have one id between them: a queue that delivers twice. */
const SHARED_ID = "shared";

const client = async (story: Story, slots: readonly Slot[], name: string): Promise<void> => {
  const { scheduler } = story.world;
  const { choose } = scheduler;
  const process = scheduler.process(name);
  const turns = 1 + choose(3, "turns");
  for (let n = 0; n < turns; n++) {
    await process.point("next turn");
    const id = IDS[choose(ID_ODDS, "turn id")];
    const turnId = id === "shared" ? SHARED_ID : `${name}t${n}`;
    const other = choose(OTHER_ODDS, "other input") === 1 ? " otherwise" : "";
    const input = `input ${turnId}${other}`;
    const onBusy = ON_BUSY[choose(BUSY_ODDS, "on busy")] ?? "reject";
    const sent: Sent = { input, onBusy, ...(id === "own" ? {} : { turnId }) };
    for (let tries = 0; tries < 3; tries++) {
      const slot = slots[choose(slots.length, "runner")];
      if (!slot) return;
      const outcome = await deliver(story, sent, { runner: slot.current(), caller: process });
      if (!outcome || !isRetried(outcome)) break;
      await process.clock.sleep(PAUSES_MS[choose(PAUSES_MS.length, "retry")] ?? 0, NEVER);
    }
  }
};

const IDS = ["own id of the caller", "shared", "own"];
const ID_ODDS = [6, 3, 2];
const OTHER_ODDS = [12, 1];
const ON_BUSY: readonly OnBusy[] = ["reject", "wait", "interrupt", "rollback"];
const BUSY_ODDS = [6, 1, 2, 2];
/** At once, soon, and after a lease. */
const PAUSES_MS = [0, 1000, 40_000];

const isRetried = (outcome: Outcome): boolean =>
  outcome.kind === "error" && !(outcome.error instanceof TurnIdReusedError);

/** A caller waits for so long; then the outcome is unknown to it. */
const PATIENCE_MS = 100_000;

/** Sends a turn to a runner; undefined where no answer comes. */
export const deliver = async (
  { world, key }: Pick<Story, "world" | "key">,
  sent: Sent,
  { runner, caller }: { readonly runner: Runner; readonly caller: Process },
): Promise<Outcome | undefined> => {
  const { log } = world;
  const delivery = newDelivery(world, runner, sent);
  log.deliveries.push(delivery);
  const hasDeadline = world.scheduler.choose(DEADLINE_ODDS, "deadline") === 1;
  const deadline = hasDeadline ? { deadlineMs: runner.process.clock.nowMs() + 28_000 } : {};
  const run = turnsFor(world, runner, delivery).run({ ...key, ...sent, ...deadline });
  const settled = run.then(
    (result): Outcome => ({ kind: "answer", result }),
    (error: unknown): Outcome => ({ kind: "error", error }),
  );
  const answered = new AbortController();
  const heard = settled.then((outcome) => {
    delivery.outcome = outcome;
    if (outcome.kind === "answer") log.answers.push({ delivery, result: outcome.result });
    else if (outcome.error instanceof StoreUnavailableError) log.seen.add("outcome unknown");
    else if (!isExpected(outcome.error))
      log.faults.push(`${delivery.name}: ${tell(outcome.error)}`);
    answered.abort("answered");
    return outcome;
  });
  return Promise.race([
    heard,
    caller.clock
      .sleep(PATIENCE_MS, answered.signal)
      .then(() => (answered.signal.aborted ? heard : undefined)),
  ]);
};

const DEADLINE_ODDS = [3, 1];

const tell = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

const isExpected = (error: unknown): boolean =>
  EXPECTED.some((type) => error instanceof type) && !(error instanceof InvalidInputError);

const EXPECTED = [
  StoreUnavailableError,
  ModelFailedError,
  SessionBusyError,
  SessionExistsError,
  SessionNotFoundError,
  TurnIdReusedError,
  TurnNotFoundError,
  TurnSupersededError,
  TurnTimeoutError,
];

/** Cancels, deletes, copies and cleans, once or twice. */
const operator = async (story: Story): Promise<void> => {
  const { world, faults } = story;
  const { choose } = world.scheduler;
  const runner = startRunner(world, "operator", faults);
  const { process } = runner;
  const acts = 1 + choose(2, "acts");
  for (let n = 0; n < acts; n++) {
    await process.clock.sleep(PAUSES_MS[choose(PAUSES_MS.length, "act later")] ?? 0, NEVER);
    await process.point("act");
    const act = ACTS[choose(ACT_ODDS, "act")] ?? "cancel";
    world.log.seen.add(`operator: ${act}`);
    await actOn(story, runner, act).catch((error: unknown) => {
      if (!isExpected(error)) world.log.faults.push(`${act}: ${tell(error)}`);
    });
  }
};

const ACTS = ["cancel", "delete", "patch", "fork", "sweep", "time to live"] as const;
const ACT_ODDS = [4, 4, 1, 2, 1, 1];

const actOn = async (
  { world, key }: Story,
  runner: Runner,
  act: (typeof ACTS)[number],
): Promise<void> => {
  const { choose } = world.scheduler;
  const { store } = runner;
  const deleting: Runner = {
    ...runner,
    store: {
      ...store,
      delete: (write) => {
        world.log.deleted.add(write.incarnation);
        return store.delete(write);
      },
    },
  };
  const sessions = sessionsOf(world, deleting);
  const nowMs = runner.process.clock.nowMs();
  switch (act) {
    case "cancel": {
      const turnId = (await sessions.read(key)).open?.turnId ?? SHARED_ID;
      return turnsFor(world, runner, newDelivery(world, runner, { input: "" })).cancel({
        ...key,
        turnId,
      });
    }
    case "delete":
      return sessions.delete(key);
    case "patch":
      await sessions.patchMetadata(key, { patched: true });
      return;
    case "fork":
      await sessions.fork(key, { sessionId: `fork${choose(2, "fork")}` });
      return;
    case "sweep":
      await sweeperOn(runner.table).sweep({ nowMs, isOver: () => false });
      return;
    case "time to live":
      return world.scheduler.outside(expireSome(world, key, nowMs));
  }
};

const newDelivery = ({ log }: WorldOptions, { process }: Runner, sent: Sent): Delivery => ({
  name: `d${log.deliveries.length}`,
  process: process.name,
  turnId: sent.turnId,
  input: sent.input,
  onBusy: sent.onBusy ?? "reject",
  answersBefore: log.answers.length,
  incarnation: undefined,
  granted: undefined,
  modelCalls: [],
  outcome: undefined,
});

export const sessionsOf = (world: WorldOptions, { process, store }: Runner): Sessions =>
  createSessions({
    store,
    clock: process.clock,
    randomBytes: world.randomBytes,
    lifetimeSeconds: world.lifetimeSeconds,
  });

/** As the table does some day: some of what has expired goes, in any order. */
const expireSome = async (
  { scheduler, table }: WorldOptions,
  key: SessionKey,
  nowMs: number,
): Promise<void> => {
  const { items } = await table.query({
    KeyConditionExpression: "pk = :pk",
    ExpressionAttributeValues: { ":pk": partitionKey(key) },
    ConsistentRead: true,
  });
  const due = items.filter((item) => Number(item["expires_at"]) <= nowMs / 1000);
  for (const item of due) {
    if (scheduler.choose(2, "expires") === 1) await table.deleteAll([item]);
  }
};

const NEVER = new AbortController().signal;
