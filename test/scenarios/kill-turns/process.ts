/** A script of this project as a process, which tells by its first line that it is ready, and where. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Started {
  readonly url: string;
  readonly pid: number;
  /** Is told each line from then on; in place of who was told before. */
  onLine(listener: (line: string) => void): void;
  stderr(): string;
  /** Resolves when it is dead. May be repeated. */
  kill(): Promise<void>;
}

/** It gets an end of its input when this process ends, however that comes. */
export const startProcess = async (
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Started> => {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const closed = once(child, "close");
  let stderr = "";
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  let listener = (line: string): void => {
    if (line.startsWith(READY)) resolve(line.slice(READY.length));
  };
  createInterface({ input: child.stdout }).on("line", (line) => listener(line));
  closed.then(() => reject(new Error(`${args[0]} didn't start.\n${stderr}`)), reject);
  return {
    url: await url,
    pid: child.pid ?? 0,
    onLine: (next) => {
      listener = next;
    },
    stderr: () => stderr,
    kill: async () => {
      child.kill("SIGKILL");
      await closed;
    },
  };
};

const READY = "ready ";
