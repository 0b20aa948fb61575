/** Runners as processes, and some that are started already, so that nobody waits for one. */
import { join } from "node:path";
import { build } from "esbuild";
import { POINTS, type Point } from "./points.ts";
import { type Started, startProcess } from "./process.ts";

export interface Runner extends Pick<Started, "url" | "pid" | "stderr" | "kill"> {
  /** Is told of each point that it passes, and of the one where it stops; in place of who was told before. */
  watch(watcher: (point: Point, isStopped: boolean) => void): void;
}

export interface RunnerPool {
  /** One that nobody else has. */
  take(): Promise<Runner>;
  /** One that lives and isn't needed any more. */
  give(runner: Runner): void;
  /** Kills them all. */
  close(): Promise<void>;
}

export interface RunnerOptions {
  readonly endpoint: string;
  readonly tableName: string;
  /** Theirs: for what they write down. */
  readonly folder: string;
  readonly leaseSeconds: number;
}

/** Resolves when so many spare ones are there. */
export const runnerPool = async (options: RunnerOptions, spares: number): Promise<RunnerPool> => {
  const script = await bundle(options.folder);
  const started: Promise<Runner>[] = [];
  const start = (): Promise<Runner> => {
    const runner = startRunner(script, options);
    // Met where it is taken.
    runner.catch(() => {});
    started.push(runner);
    return runner;
  };
  // The first one compiles for all.
  const ready = [start()];
  await ready[0];
  while (ready.length < spares) ready.push(start());
  await Promise.all(ready);

  return {
    take: () => {
      const runner = ready.shift() ?? start();
      while (ready.length < spares) ready.push(start());
      return runner;
    },
    give: (runner) => {
      runner.watch(() => {});
      ready.unshift(Promise.resolve(runner));
    },
    close: async () => {
      await Promise.allSettled(started.map(async (runner) => (await runner).kill()));
    },
  };
};

/** One file, so that each starts in half the time, and runs what the first one ran though the sources change meanwhile. */
const bundle = async (folder: string): Promise<string> => {
  const outfile = join(folder, "runner.mjs");
  await build({
    entryPoints: [join(import.meta.dirname, "runner.ts")],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    logLevel: "warning",
  });
  return outfile;
};

const startRunner = async (script: string, options: RunnerOptions): Promise<Runner> => {
  const { endpoint, tableName, folder, leaseSeconds } = options;
  const args = [script, endpoint, tableName, folder, String(leaseSeconds)];
  const env = { NODE_COMPILE_CACHE: join(folder, "compiled") };
  const { onLine, ...started } = await startProcess(args, env);
  return {
    ...started,
    watch: (watcher) =>
      onLine((line) => {
        const [, what, name] = /^(at|stopped) (.*)$/.exec(line) ?? [];
        const point = POINTS.find((each) => each === name);
        if (point) watcher(point, what === "stopped");
      }),
  };
};
