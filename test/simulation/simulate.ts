/** One simulated run: a story with its faults, a calm end, and the checks. */

import type { Table } from "../../lib/store/dynamodb/requests.ts";
import { sessionStoreOn } from "../../lib/store/dynamodb/store.ts";
import { isAlive, type SessionKey } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { RandomBytes } from "../../lib/turns/clock.ts";
import { TurnIdReusedError, TurnSupersededError } from "../../lib/turns/errors.ts";
import type { Attempt } from "./attempts.ts";
import { type End, violations } from "./check.ts";
import { CALM, createFaults, type FaultOptions, STORMY } from "./faults.ts";
import { type Delivery, type Log, newLog } from "./log.ts";
import { observedTable } from "./observed.ts";
import { startRunner, type WorldOptions } from "./runners.ts";
import { createScheduler, mulberry32, type Process, StuckError } from "./scheduler.ts";
import { deliver, play } from "./story.ts";
import { simulatedTable } from "./table.ts";

export interface RunOptions {
  readonly seed?: number;
  readonly choices?: readonly number[];
  /** A simulated one by default. */
  readonly table?: Table;
  /** Of the session: no other run on the same table may have it. */
  readonly name?: string;
  /** Takes something out of the protocol. */
  readonly mutant?: Mutant;
  readonly onChoice?: (label: string, answer: number) => void;
  /** Of what answers hold, for the trace. */
  readonly digest?: (content: unknown) => string;
}

export interface Mutant {
  readonly name: string;
  /** Why nothing breaks without it, where that is so. */
  readonly redundant?: string;
  readonly table?: (table: Table) => Table;
  readonly store?: (store: SessionStore) => SessionStore;
}

export interface Run {
  readonly violations: readonly string[];
  readonly seen: ReadonlySet<string>;
  readonly choices: readonly number[];
  readonly trace: readonly Attempt[];
  readonly log: Log;
}

/** The future, since a real table's time to live goes by the real clock. */
const START_MS = Date.UTC(2100, 0, 1);

export const simulate = async ({
  seed,
  choices,
  table: given,
  name = "run",
  mutant,
  onChoice,
  digest,
}: RunOptions): Promise<Run> => {
  const scheduler = createScheduler({
    ...(seed === undefined ? {} : { seed }),
    ...(choices ? { choices } : {}),
    ...(onChoice ? { onChoice } : {}),
    startMs: START_MS,
    maxSteps: 20_000,
  });
  const log = newLog();
  const raw =
    given ?? simulatedTable({ staleness: () => scheduler.choose([12, 1, 1], "stale") }).asTable();
  const real = mutant?.table ? mutant.table(raw) : raw;
  const key: SessionKey = { owner: "ann", sessionId: name };
  const lifetimes = [30 * 86_400, 150];
  const world: WorldOptions = {
    scheduler,
    table: observedTable(real, log, scheduler.nowMs),
    log,
    randomBytes: countedBytes(),
    lifetimeSeconds: lifetimes[scheduler.choose([5, 1], "lifetime")] ?? 0,
    ...(mutant?.store ? { changed: mutant.store } : {}),
  };
  const weather = STORM[scheduler.choose(STORM.length, "weather")] ?? STORMY;
  const faults = createFaults(scheduler, { ...weather, ...(digest ? { digest } : {}) });
  let end: End | undefined;
  try {
    play({ world, faults, key });
    await scheduler.run();
    const calm = createFaults(scheduler, CALM, [...faults.trace]);
    const settling = settle({ world, faults: calm, key });
    await scheduler.run();
    await settling;
    end = await scheduler.outside(endOf(raw, world, key));
  } catch (error) {
    log.faults.push(error instanceof StuckError ? error.message : String((error as Error).stack));
  }
  return {
    violations: violations(log, end),
    seen: log.seen,
    choices: scheduler.choices,
    trace: faults.trace,
    log,
  };
};

const RARE = {
  unsent: 0.2,
  lost: 0.2,
  late: 0.2,
  twice: 0.2,
  throttled: 0.2,
  slow: 0.2,
  outage: 0.2,
  pause: 0.1,
  kill: 0.1,
  torn: 0.2,
};

/** Each rare story needs a few faults of its kind, and not too many others between them. */
const STORM: readonly FaultOptions[] = [
  STORMY,
  { ...STORMY, withoutItem: true },
  { ...STORMY, rate: 0.1 },
  { rate: 0.25, weights: { ...RARE, late: 4, twice: 4, lost: 2 } },
  { rate: 0.2, weights: { ...RARE, pause: 4, slow: 2 } },
  { rate: 0.2, weights: { ...RARE, kill: 3, lost: 2, outage: 2 } },
];

/** From every state whoever asks once more gets an outcome, and a new turn is done. */
const settle = async (story: Parameters<typeof play>[0]): Promise<void> => {
  const { world, faults } = story;
  const { log } = world;
  const runner = startRunner(world, "calm", faults);
  const caller = world.scheduler.process("caller");
  const asked = new Map(log.deliveries.map((it) => [it.turnId, it.input]));
  const answered = new Set(log.answers.map(({ result }) => result.turnId));
  for (const [turnId, input] of asked) {
    // One that has its answer is asked for once in a while: each costs a whole turn.
    if (turnId === undefined) continue;
    if (answered.has(turnId) && world.scheduler.choose([3, 1], "ask again") === 0) continue;
    await insist(story, { runner, caller, sent: { turnId, input } });
  }
  await insist(story, { runner, caller, sent: { input: "the last" } });
};

/** Model failures are the model's own: they are no reason to give up. */
const insist = async (
  { world, key }: Parameters<typeof play>[0],
  {
    runner,
    caller,
    sent,
  }: {
    readonly runner: ReturnType<typeof startRunner>;
    readonly caller: Process;
    readonly sent: Pick<Delivery, "input"> & { readonly turnId?: string };
  },
): Promise<void> => {
  for (let tries = 0; tries < 20; tries++) {
    const outcome = await deliver({ world, key }, { ...sent, onBusy: "wait" }, { runner, caller });
    if (outcome?.kind === "answer") return;
    const error = outcome?.error;
    if (sent.turnId && (error instanceof TurnIdReusedError || error instanceof TurnSupersededError))
      return;
  }
  world.log.faults.push(`no outcome for ${sent.turnId ?? "a new turn"} in calm times`);
};

const endOf = async (
  table: Table,
  { scheduler, log, lifetimeSeconds }: WorldOptions,
  key: SessionKey,
): Promise<End | undefined> => {
  const store = sessionStoreOn(table, { cacheBytes: 1_000_000 });
  const head = await store.read(key);
  if (!head || !isAlive(head, scheduler.nowMs())) return undefined;
  const history = await store.turns(head, { from: 1, to: head.version });
  const ids = new Set(log.effects.map(({ turnId }) => turnId));
  const records = await Promise.all(
    Array.from(ids, async (id) => {
      const place = { key, incarnation: head.incarnation };
      return [id, await store.findTurn(place, turnKey(id))] as const;
    }),
  );
  const known = new Map(records);
  const isShortLived = lifetimeSeconds < 86_400;
  return { isShortLived, head, history, record: (id) => known.get(id) };
};

/** All different, and the same in every run. */
const countedBytes = (): RandomBytes => {
  let count = 0;
  return (length) => {
    const random = mulberry32(++count);
    return Uint8Array.from({ length }, () => Math.floor(random() * 256));
  };
};
