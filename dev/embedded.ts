/** The embedded DynamoDB: dynalite in this process, in memory or in a data folder. */
import dynalite from "dynalite";
import { openDataFolder } from "./data-folder.ts";
import { listen } from "./server.ts";

export type EmbeddedOptions = {
  /** Where the data survives a restart; in memory without one. */
  dataDir?: string;
  /** A free one without it. */
  port?: number;
};

export type EmbeddedDynamoDb = {
  endpoint: string;
  close(): Promise<void>;
};

const HOST = "127.0.0.1";
const CLOSE_GRACE_MS = 2_000;

/** Throws a DataFolderError where `dataDir` can't be used. */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedDynamoDb> {
  const folder = options.dataDir === undefined ? null : await openDataFolder(options.dataDir);
  const server = dynalite({
    ...(folder && { path: folder.databasePath }),
    createTableMs: 0,
    deleteTableMs: 0,
    updateTableMs: 0,
  });
  // dynalite throws a request's "error" event, which is only a client that hung up in mid-body, and
  // would end the process with it. This runs right after dynalite's own listener.
  server.on("request", (request) => {
    request.removeAllListeners("error");
    request.on("error", () => {});
  });

  try {
    const listening = await listen(server, { host: HOST, port: options.port ?? 0 });
    return {
      endpoint: `http://${HOST}:${listening.port}`,
      async close() {
        await listening.close(CLOSE_GRACE_MS);
        await folder?.release();
      },
    };
  } catch (error) {
    await folder?.release();
    throw error;
  }
}
