/** Our own store, in the ordinary course of a conversation. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { dynamoSessionStore } from "../lib/store/dynamodb/store.ts";
import type { SessionKey } from "../lib/store/head.ts";
import type { SessionStore } from "../lib/store/store.ts";
import { createSessions } from "../lib/turns/sessions.ts";
import { createTurns } from "../lib/turns/turns.ts";
import { copySession } from "./copy.ts";
import { AVERAGED_TURNS, cpuMsOf, type Row, rowOf } from "./measure.ts";
import type { Meter } from "./meter.ts";
import { replay } from "./replay.ts";
import { agentFor, sceneOf } from "./scene.ts";
import { type Costs, type Trace, writesOf } from "./trace.ts";

export interface Bench {
  readonly meter: Meter;
  /** For what isn't measured. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** Ascending. */
  readonly turns: readonly number[];
  readonly cpuRuns: number;
}

const WINDOW = 20;

const SYSTEMS = [
  { system: "oneturn", window: undefined },
  { system: `oneturn, window ${WINDOW}`, window: WINDOW },
];

/**
 * One conversation runs through in one process. At each turn asked for, copies of it run that turn in
 * every way. The conversation itself has a window, which saves the benchmark time and no request:
 * what is written doesn't depend on it.
 */
export async function* oneturnRows({
  meter: { client: metered, think, measure },
  client,
  tableName,
  turns,
  cpuRuns,
}: Bench): AsyncGenerator<Row> {
  const open = (): SessionStore => dynamoSessionStore({ client: metered, tableName });
  const warm = open();
  const key = { owner: "bench", sessionId: "oneturn" };
  await createSessions({ store: warm }).create(key);
  const writes: Costs[] = [];

  for (let turn = 1; turn <= (turns.at(-1) ?? 0); turn++) {
    for (const { system, window } of turns.includes(turn) ? SYSTEMS : []) {
      const runOnCopy = async (store: SessionStore): Promise<Trace> => {
        const copy = await copySession({ client, tableName }, key);
        return measure(prepareTurn(store, copy, { turn, window, think }));
      };
      const before = writes.slice(1 - AVERAGED_TURNS);
      const cold = await runOnCopy(open());
      const cpu = await ownCpu(cold, { turn, window, key }, cpuRuns);
      yield rowOf({ system, process: "cold", turn }, { trace: cold, before, cpuMs: cpu.cold });
      const trace = await runOnCopy(warm);
      yield rowOf({ system, process: "warm", turn }, { trace, before, cpuMs: cpu.warm });
    }
    const trace = await measure(prepareTurn(warm, key, { turn, window: WINDOW, think }));
    writes.push(writesOf(trace));
  }
}

interface Part {
  readonly turn: number;
  readonly window: number | undefined;
  readonly think?: () => Promise<void>;
}

const prepareTurn = (
  store: SessionStore,
  key: SessionKey,
  { turn, window, think = async () => {} }: Part,
) => {
  const scene = sceneOf(turn);
  const { run } = createTurns({ store, agent: agentFor({ scene, think, window }) });
  return () => run({ ...key, input: scene.input });
};

/** The turn again and again, with the table's answers played from a cold turn's trace. */
const ownCpu = async (
  trace: Trace,
  { key, ...part }: Part & { readonly key: SessionKey },
  runs: number,
) => {
  const { client, rewind } = replay(trace);
  const open = (): SessionStore => dynamoSessionStore({ client, tableName: "replayed" });
  const prepare = (store: SessionStore) => {
    rewind();
    return prepareTurn(store, key, part);
  };
  const warm = open();
  await prepare(warm)();
  return {
    cold: await cpuMsOf(() => prepare(open()), runs),
    warm: await cpuMsOf(() => prepare(warm), runs),
  };
};
