import { randomUUID } from "node:crypto";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { Session } from "../lib/session/session.ts";
import { AVERAGED_TURNS, cpuMsOf, type Missing, type Row, rowOf } from "./measure.ts";
import type { Bench } from "./oneturn.ts";
import { type Conversation, REFERENCES, type Reference } from "./references.ts";
import { replay } from "./replay.ts";
import { agentFor, messagesOf, sceneOf } from "./scene.ts";
import { type Costs, type Trace, writesOf } from "./trace.ts";

/** Both kinds of process do the same in these: nothing is kept between turns. */
export async function* referenceRows(bench: Bench): AsyncGenerator<Row | Missing> {
  for (const reference of REFERENCES) {
    for (const turn of bench.turns) {
      const row = await measured(bench, reference, turn);
      yield { ...row, process: "cold" };
      yield { ...row, process: "warm" };
    }
  }
}

/** Stores what went before, and runs the 20 turns up to this one. */
const measured = async (
  { meter, client, tableName, cpuRuns }: Bench,
  reference: Reference,
  turn: number,
): Promise<Row | Missing> => {
  const label = { system: reference.name, process: "cold" as const, turn };
  const pk = `bench#${randomUUID()}`;
  const open = (through: DynamoDBClient) => reference.open({ client: through, tableName, pk });
  const first = Math.max(1, turn - AVERAGED_TURNS + 1);
  const history = Array.from({ length: first - 1 }, (_, n) => messagesOf(sceneOf(n + 1)));
  const before: Costs[] = [];
  let trace: Trace = { exchanges: [], thinking: [], bytes: 0 };
  try {
    if (history.length > 0) await open(client).fill(history);
    for (let now = first; now <= turn; now++) {
      trace = await meter.measure(prepareTurn(open(meter.client), now, meter.think));
      before.push(writesOf(trace));
    }
  } catch (error) {
    if (isTooLarge(error)) return { ...label, ...NOTHING };
    throw error;
  }

  const played = replay(trace);
  const cpuMs = await cpuMsOf(() => {
    played.rewind();
    return prepareTurn(open(played.client), turn, async () => {});
  }, cpuRuns);
  return rowOf(label, { trace, before: before.slice(0, -1), cpuMs });
};

const prepareTurn = (conversation: Conversation, turn: number, think: () => Promise<void>) => {
  const scene = sceneOf(turn);
  const agent = agentFor({ scene, think });
  return async (): Promise<void> => {
    const { messages: before, version } = await conversation.restore();
    const session = new Session({ messages: before });
    const { messages } = await agent.runTurn(session, scene.input);
    await conversation.save({ version, messages, added: messages.slice(before.length) });
  };
};

const NOTHING = {
  requests: null,
  roundTrips: null,
  writeUnits: null,
  readUnits: null,
  bytes: null,
  cpuMs: null,
};

const isTooLarge = (error: unknown): boolean =>
  error instanceof Error &&
  error.name === "ValidationException" &&
  error.message.includes("Item size");
