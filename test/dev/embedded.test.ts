import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { GetItemCommand, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { describe, expect, onTestFinished, test } from "vitest";
import { DataFolderError } from "../../dev/data-folder.ts";
import { type EmbeddedDynamoDb, startEmbedded } from "../../dev/embedded.ts";
import { createTable, readTableDefinition } from "../../dev/table.ts";
import { dynamoClient } from "../support/dynamodb.ts";
import { startChild } from "./child.ts";
import { temporaryFolder } from "./folder.ts";

const CHILD = join(import.meta.dirname, "embedded-child.ts");
const KEY = { pk: { S: "a" }, sk: { S: "HEAD" } };

async function open(dataDir?: string): Promise<EmbeddedDynamoDb> {
  const database = await startEmbedded(dataDir === undefined ? {} : { dataDir });
  onTestFinished(() => database.close());
  return database;
}

async function storedItem(database: EmbeddedDynamoDb): Promise<unknown> {
  const client = dynamoClient(database.endpoint);
  const { Item } = await client.send(new GetItemCommand({ TableName: "sessions", Key: KEY }));
  return Item;
}

async function refusal(dataDir: string): Promise<DataFolderError> {
  const error: unknown = await startEmbedded({ dataDir }).catch((reason: unknown) => reason);
  if (!(error instanceof DataFolderError)) throw new Error("not refused", { cause: error });
  return error;
}

describe("in memory", () => {
  test("each one is a database of its own", async () => {
    const [one, other] = [await open(), await open()];
    await createTable(dynamoClient(one.endpoint), "sessions", readTableDefinition());
    const { TableNames } = await dynamoClient(other.endpoint).send(new ListTablesCommand());
    expect(TableNames).toEqual([]);
  });

  test("it listens on the loopback interface only", async () => {
    expect(new URL((await open()).endpoint).hostname).toBe("127.0.0.1");
  });

  test("a client that hangs up in mid-body disturbs nobody", async () => {
    const { endpoint } = await open();
    const socket = connect(Number(new URL(endpoint).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{");
    // An answered request on another connection shows that the server has seen the first one.
    await (await fetch(endpoint)).text();
    socket.destroy();
    await once(socket, "close");
    expect((await fetch(endpoint)).status).toBe(200);
  });
});

describe("in a data folder", () => {
  test("what was stored is there after a restart; the folder is made where it is missing", async () => {
    const folder = await temporaryFolder();
    const dataDir = join(folder, "not", "yet");
    const child = startChild([CHILD, dataDir, "close"]);
    // With its clients' sockets still open, the process ends by itself.
    expect(await child.ended, child.stderr()).toBe(0);
    expect(await storedItem(await open(dataDir))).toEqual(KEY);
  });

  test("what was stored is there after a kill -9", async () => {
    const folder = await temporaryFolder();
    const child = startChild([CHILD, folder, "go on"]);
    await child.printed(/stored/);
    child.kill("SIGKILL");
    expect(await child.ended).toBe("SIGKILL");
    expect(await storedItem(await open(folder))).toEqual(KEY);
  });

  test("a second one on the folder is refused, in the same process and in another", async () => {
    const folder = await temporaryFolder();
    const child = startChild([CHILD, folder, "go on"]);
    await child.printed(/stored/);
    const error = await refusal(folder);
    expect(error.reason).toBe("in_use");
    expect(error.message).toBe(
      `The data folder ${folder} is in use by another gateway: stop that one, or set DATA_DIR to another folder.`,
    );
    child.kill("SIGKILL");
    await child.ended;

    await open(folder);
    expect((await refusal(folder)).reason).toBe("in_use");
  });

  test("a folder that was refused can be had as soon as the other one closes", async () => {
    const folder = await temporaryFolder();
    const first = await startEmbedded({ dataDir: folder });
    await refusal(folder);
    await first.close();
    await open(folder);
  });

  test("a place that can't be a folder is refused with one line that says what to do", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "file");
    await writeFile(file, "");
    for (const dataDir of [file, join(file, "below"), "/proc/takes/no-folders"]) {
      const error = await refusal(dataDir);
      expect(error.reason).toBe("unusable");
      expect(error.message).toMatch(
        /^The data folder .+ can't be used \(.+\): set DATA_DIR to .+$/,
      );
    }
  });

  test("a damaged database is refused at the start, and lets go of the folder", async () => {
    const folder = await temporaryFolder();
    const database = join(folder, "dynamodb");
    await mkdir(database);
    await writeFile(join(database, "CURRENT"), "nothing of the kind\n");
    expect((await refusal(folder)).reason).toBe("unusable");
    await rm(database, { recursive: true });
    await open(folder);
  });
});
