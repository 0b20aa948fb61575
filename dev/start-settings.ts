/** What `npm start` reads from the environment. */
import { statSync } from "node:fs";
import { resolve } from "node:path";

export type StartSettings = {
  /** 0 takes a free one. */
  port: number;
  dataDir: string;
  /** The module that exports the agent; null for functions/agent.ts. */
  agentPath: string | null;
};

/** The gateway can't start; the message is one line that says what to do. */
export class StartError extends Error {
  override name = "StartError";
}

export function readStartSettings(env: NodeJS.ProcessEnv, cwd: string): StartSettings {
  // An empty variable is one that is not set, as `PORT= npm start` means it.
  const port = env["PORT"] || "3000";
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new StartError(`PORT is ${JSON.stringify(port)}: set it to a port number, 0 to 65535.`);
  }
  const agentPath = env["AGENT"] ? resolve(cwd, env["AGENT"]) : null;
  if (agentPath !== null && !isFile(agentPath)) {
    throw new StartError(`AGENT is ${agentPath}, but there is no such file.`);
  }
  return { port: Number(port), dataDir: resolve(cwd, env["DATA_DIR"] || ".oneturn"), agentPath };
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
