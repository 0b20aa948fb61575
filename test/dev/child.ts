/** Child processes of the tests: a script of this project, its output, and its end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

export type Child = {
  stdout(): string;
  stderr(): string;
  /** Resolves with the first match in stdout; rejects where the process ends without one. */
  printed(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** The exit code, or the signal that ended it. */
  ended: Promise<number | NodeJS.Signals | null>;
};

export type ChildOptions = {
  cwd?: string;
  env?: Record<string, string>;
  uid?: number;
};

/** Killed at the end of the test where it still runs. */
export function startChild(args: string[], options: ChildOptions = {}): Child {
  const { env, ...rest } = options;
  const child = spawn(process.execPath, args, {
    ...rest,
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    kill: (signal) => child.kill(signal),
    ended: exitOf(child),
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout);
          if (match) resolve(match[1] ?? match[0]);
        };
        child.stdout.on("data", look);
        child.once("close", () => reject(new Error(`It ended.\n${stdout}\n${stderr}`)));
        look();
      }),
  };
}

async function exitOf(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  await once(child, "close");
  return child.exitCode ?? child.signalCode;
}
