/** `npm start`: the functions behind a local API Gateway, on an embedded DynamoDB. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { loadAgent, provideOneturn } from "./agent-module.ts";
import { DataFolderError } from "./data-folder.ts";
import { type EmbeddedDynamoDb, startEmbedded } from "./embedded.ts";
import { type Gateway, type ProxyHandler, startGateway } from "./gateway.ts";
import { number, readSetting, SERVERLESS_YML } from "./serverless-yml.ts";
import { readStartSettings, StartError } from "./start-settings.ts";
import { createTable, readTableDefinition } from "./table.ts";

const TABLE_NAME = "oneturn-local";

try {
  await start();
} catch (error) {
  console.error(isExplained(error) ? error.message : error);
  process.exit(1);
}

async function start(): Promise<void> {
  const settings = readStartSettings(process.env, process.cwd());
  const database = await startEmbedded({ dataDir: settings.dataDir });
  try {
    setFunctionEnvironment(database.endpoint);
    await createSessionsTable(database.endpoint);
    const gateway = await listen(settings.port, await loadHandler(settings.agentPath));
    stopOnSignal(gateway, database);
    console.info(welcome(gateway.url, settings.dataDir));
  } catch (error) {
    await database.close();
    throw error;
  }
}

function stopOnSignal(gateway: Gateway, database: EmbeddedDynamoDb): void {
  let isStopping = false;
  const stop = async (): Promise<void> => {
    // npm passes on the signal of a Ctrl-C that the terminal has sent already.
    if (isStopping) return;
    isStopping = true;
    await gateway.close();
    await database.close();
    process.exit(0);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop());
}

/** Before any function is imported: they read their environment as they load. */
function setFunctionEnvironment(endpoint: string): void {
  const { env } = process;
  env["TABLE_NAME"] = TABLE_NAME;
  env["DYNAMODB_ENDPOINT"] = endpoint;
  env["AWS_REGION"] ??= "us-east-1";
  // The embedded engine takes any; a model on AWS needs the real ones, which are left as they are.
  if (env["AWS_ACCESS_KEY_ID"] === undefined && env["AWS_PROFILE"] === undefined) {
    env["AWS_ACCESS_KEY_ID"] = "local";
    env["AWS_SECRET_ACCESS_KEY"] = "local";
  }
}

async function createSessionsTable(endpoint: string): Promise<void> {
  const client = new DynamoDBClient({
    endpoint,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  });
  try {
    await createTable(client, TABLE_NAME, readTableDefinition());
  } finally {
    client.destroy();
  }
}

async function loadHandler(agentPath: string | null): Promise<ProxyHandler> {
  if (agentPath === null) return (await import("../functions/http.ts")).handler;
  provideOneturn();
  const agent = await loadAgent(agentPath);
  const { composeHttp } = await import("../functions/compose.ts");
  return composeHttp(agent);
}

async function listen(port: number, handler: ProxyHandler): Promise<Gateway> {
  const timeoutMs = 1000 * number(readSetting(SERVERLESS_YML, "functions", "http", "timeout"));
  try {
    return await startGateway({ handler, port, timeoutMs, log: console });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : null;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    const reason = code === "EADDRINUSE" ? "is in use" : "may not be opened";
    throw new StartError(`Port ${port} ${reason}: set PORT to another one.`, { cause: error });
  }
}

function welcome(url: string, dataDir: string): string {
  const body = JSON.stringify({ input: "Add 2 and 3, then multiply the result by 4" });
  return `oneturn is at ${url}. Try:

  curl -s ${url}/v1/sessions/demo/turns -H 'content-type: application/json' -d '${body}'

The data is in ${dataDir}.
`;
}

/** Anything else is a fault of the code, whose stack says where. */
function isExplained(error: unknown): error is Error {
  if (error instanceof StartError || error instanceof DataFolderError) return true;
  // Its class is not at hand: importing functions/config.ts reads the settings.
  return error instanceof Error && error.name === "ConfigError";
}
