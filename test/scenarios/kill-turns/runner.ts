/**
 * A runner as a process of its own: the API behind the local gateway, on a table elsewhere. It tells
 * each point that it passes, and stops where a request says so, to be killed there.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { startGateway } from "../../../dev/gateway.ts";
import { httpHandler } from "../../../lib/http/handler.ts";
import { dynamoClient } from "../../../lib/store/dynamodb/client.ts";
import { dynamoSessionStore } from "../../../lib/store/dynamodb/store.ts";
import { systemClock } from "../../../lib/turns/clock.ts";
import { createSessions } from "../../../lib/turns/sessions.ts";
import { createTurns } from "../../../lib/turns/turns.ts";
import { scriptedAgent } from "./agent.ts";
import { AHEAD_HEADER, type At, pointedStore, STOP_HEADER, type Stop } from "./points.ts";

const [, , endpoint = "", tableName = "", folder = "", leaseSeconds] = process.argv;

// Nothing that waits in this process must get lost with it.
const print = (line: string): void => void writeSync(1, `${line}\n`);

let aheadMs = 0;
let stop: Stop | undefined;
let passed = 0;

const at: At = (point) => {
  print(`at ${point}`);
  if (stop?.at !== point || ++passed < stop.nth) return;
  print(`stopped ${point}`);
  // The whole process stands still. It is killed from outside, or takes its own life where nobody comes.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000);
  process.kill(process.pid, "SIGKILL");
};

const client = dynamoClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "test", secretAccessKey: "test" },
});
const store = pointedStore(dynamoSessionStore({ client, tableName }), at);
const agent = scriptedAgent(folder, at);
const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
const handle = httpHandler({
  turns: createTurns({ agent, store, clock, leaseSeconds: Number(leaseSeconds) }),
  sessions: createSessions({ store, clock }),
  nowMs: clock.nowMs,
  version: "test",
  onError: (error, { status }) => {
    if (status >= 500) console.error(error);
  },
});

const gateway = await startGateway({
  handler: async (event, context) => {
    aheadMs = Number(event.headers[AHEAD_HEADER] ?? aheadMs);
    const order = event.headers[STOP_HEADER];
    if (order !== undefined) {
      stop = order === "" ? undefined : JSON.parse(order);
      passed = 0;
    }
    const answer = await handle(event, context);
    if (event.httpMethod === "POST" && answer.statusCode === 200) at("before the answer");
    return answer;
  },
  port: 0,
  timeoutMs: 60_000,
  log: { info: () => {}, error: console.error },
});

// It doesn't outlive who started it.
process.stdin.on("end", () => process.exit()).resume();
flushCompileCache();
print(`ready ${gateway.url}`);
