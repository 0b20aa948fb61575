/**
 * The folder that holds the embedded database. One process at a time may have it, and whatever is
 * wrong with it shows here, before anything is served: dynalite opens LevelDB in the background and
 * answers a failed open with an uncaught exception at the first request.
 */
import { mkdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { ClassicLevel } from "classic-level";

export type DataFolder = {
  /** Where dynalite keeps its LevelDB. */
  databasePath: string;
  release(): Promise<void>;
};

/** The data folder can't be used; the message is one line that says what to do. */
export class DataFolderError extends Error {
  override name = "DataFolderError";
  readonly reason: "in_use" | "unusable";

  constructor(reason: "in_use" | "unusable", message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  const folder = resolve(dataDir);
  const databasePath = join(folder, "dynamodb");
  try {
    await makeFolder(folder);
  } catch (error) {
    throw dataFolderError(folder, error);
  }

  // LevelDB's own lock is the guard: the system drops it with the process, however that ends. It is
  // a second, empty database, because the first one has to be closed again for dynalite to open it.
  const guard = await openLevel(join(folder, "lock"), folder);
  try {
    const database = await openLevel(databasePath, folder);
    await database.close();
  } catch (error) {
    await guard.close();
    throw error;
  }
  return { databasePath, release: () => guard.close() };
}

/** mkdir's own `recursive` never ends where a folder exists but takes no new ones, as in /proc. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (hasCode(error, "EEXIST")) return;
    if (!hasCode(error, "ENOENT") || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path);
  }
}

async function openLevel(path: string, folder: string): Promise<ClassicLevel> {
  const level = new ClassicLevel(path);
  try {
    await level.open();
  } catch (error) {
    throw dataFolderError(folder, error);
  }
  return level;
}

function dataFolderError(folder: string, error: unknown): DataFolderError {
  // LevelDB reports a failed open as the cause of a general "not open".
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (hasCode(cause, "LEVEL_LOCKED")) {
    return new DataFolderError(
      "in_use",
      `The data folder ${folder} is in use by another gateway: stop that one, or set DATA_DIR to another folder.`,
      { cause },
    );
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new DataFolderError(
    "unusable",
    `The data folder ${folder} can't be used (${reason.replaceAll(/\s+/g, " ")}): set DATA_DIR to a folder that can be read and written.`,
    { cause },
  );
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
