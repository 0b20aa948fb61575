/** A process that lives with a session of 20 MB; prints what it saw, as JSON. Run by large.test.ts. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { Agent } from "../../lib/agent/agent.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import { dynamoSweeper } from "../../lib/store/dynamodb/sweep.ts";
import { systemClock } from "../../lib/turns/clock.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns } from "../../lib/turns/turns.ts";

const [, , endpoint = "", tableName = ""] = process.argv;
// Without time limits: what is looked at is memory, and a table on a busy machine may be slow.
const client = new DynamoDBClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
let laterMs = 0;
const clock = { ...systemClock, nowMs: () => Date.now() + laterMs };
const start = () => {
  const store = dynamoSessionStore({ client, tableName });
  let shown = 0;
  const model = {
    complete: async (messages: readonly unknown[]) => {
      shown = messages.length;
      return { message: assistantMessage("hello") };
    },
  };
  const agent = new Agent({ model });
  return {
    turns: createTurns({ agent, store, clock }),
    sessions: createSessions({ store, clock }),
    shown: () => shown,
  };
};

const TURNS = 5000;
const key = { owner: "ann", sessionId: "large" };
const created_at = new Date(Date.now() - 86_400_000).toISOString();
const messages = Array.from({ length: TURNS }, (_, n) => [
  { role: "user", content: `${n} ${words(n, 500)}` },
  { role: "assistant", content: `${n} ${words(n + 1, 3500)}` },
]).flat();
await start().sessions.import(key, { session_id: "large", created_at, metadata: {}, messages });

const { turns, sessions, shown } = start();
const first = await turns.run({ ...key, input: "Hi" });
const second = await turns.run({ ...key, input: "Hi" });
const head = await sessions.read(key);

let paged = 0;
let pages = 0;
for (const order of ["asc", "desc"] as const) {
  let cursor: string | undefined;
  do {
    const page = await sessions.messages(head, {
      order,
      limit: 1000,
      ...(cursor === undefined ? {} : { cursor }),
    });
    paged += page.data.length;
    pages++;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}
const listed = await sessions.list("ann");
const exported = JSON.stringify((await sessions.export(head)).snapshot());
const forked = await sessions.fork(key, { sessionId: "forked" });
const afterFork = await turns.run({ owner: "ann", sessionId: "forked", input: "Hi" });

laterMs = 40 * 86_400_000;
const gone = await sessions.read(key).then(
  () => "there",
  (error: unknown) => (error instanceof Error ? error.name : String(error)),
);
const swept = await dynamoSweeper({ client, tableName }).sweep({
  nowMs: clock.nowMs(),
  isOver: () => false,
});

console.log(
  JSON.stringify({
    bytes: head.counts.bytes,
    versions: [first.version, second.version, forked.version, afterFork.version],
    shown: shown(),
    paged,
    listed: listed.data.map(({ sessionId, counts }) => [sessionId, counts.turns]),
    exported: exported.length > 20_000_000,
    pages: pages > 8,
    gone,
    swept,
    rssMegabytes: Math.round(process.resourceUsage().maxRSS / 1024),
  }),
);
client.destroy();

/** Of no pattern that a compressor would find. */
function words(seed: number, length: number): string {
  let text = "";
  for (let state = seed * 7919 + 12_345; text.length < length; ) {
    state = (state * 48_271) % 2_147_483_647;
    text += `${state.toString(36)} `;
  }
  return text.slice(0, length);
}
