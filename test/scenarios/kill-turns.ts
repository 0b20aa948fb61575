/**
 * Turns on real processes that are killed at random moments, again and again, and what must hold
 * after each: `npm run kill -- [--runs 1000] [--seed n] [--at-once 16] [--dynalite]`.
 *
 * A seed draws the same turns and the same kills, each at a point or some time after one; what a
 * kill after a time meets is for the machine to say.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createTable, readTableDefinition } from "../../dev/table.ts";
import { dynamoClient } from "../../lib/store/dynamodb/client.ts";
import { violations } from "./kill-turns/check.ts";
import { startEngine } from "./kill-turns/engine.ts";
import type { Evidence } from "./kill-turns/evidence.ts";
import { planOf } from "./kill-turns/plan.ts";
import { openStage, type Stage } from "./kill-turns/play.ts";
import { runnerPool } from "./kill-turns/pool.ts";
import { newTally } from "./kill-turns/tally.ts";

/** Where runners live and die: a table of its own, and a folder for what they write down. */
export interface Theatre {
  stage(session: string): Stage;
  close(): Promise<void>;
}

export interface TheatreOptions {
  readonly endpoint: string;
  /** How many runners are kept ready. */
  readonly spares: number;
  readonly leaseSeconds?: number;
  /** Whether a caller that is refused lets the time of a lease pass at once. */
  readonly skipsLeases?: boolean;
}

export interface Played {
  readonly seed: number;
  readonly violations: readonly string[];
  /** None where it came to no end. */
  readonly evidence?: Evidence;
  readonly story: readonly string[];
}

export interface Many {
  readonly seed: number;
  readonly runs: number;
  readonly atOnce: number;
  readonly onPlayed?: (played: Played) => void;
}

/** From so many runs on, whatever can happen does. */
const MANY = 300;

export const openTheatre = async ({
  endpoint,
  spares,
  leaseSeconds = 1,
  skipsLeases = false,
}: TheatreOptions): Promise<Theatre> => {
  const folder = await mkdtemp(join(tmpdir(), "oneturn-"));
  const tableName = `kill-${crypto.randomUUID()}`;
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const client = dynamoClient({ endpoint, region: "us-east-1", credentials });
  await createTable(client, tableName, readTableDefinition());
  client.destroy();
  const place = { folder, leaseSeconds };
  const pool = await runnerPool({ endpoint, tableName, ...place }, spares);
  return {
    stage: (session) => openStage({ session, pool, skipsLeases, ...place }),
    close: async () => {
      await pool.close();
      await rm(folder, { recursive: true });
    },
  };
};

export const playMany = async (
  theatre: Theatre,
  { seed, runs, atOnce, onPlayed }: Many,
): Promise<Played[]> => {
  const played: Played[] = [];
  let next = seed;
  const lane = async (): Promise<void> => {
    while (next < seed + runs) {
      const one = await playSeed(theatre, next++);
      played.push(one);
      onPlayed?.(one);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return played;
};

const playSeed = async (theatre: Theatre, seed: number): Promise<Played> => {
  const { session, rounds } = planOf(seed);
  const stage = theatre.stage(session);
  const { story } = stage;
  try {
    for (const round of rounds) await stage.play(round);
    const evidence = await stage.end();
    return { seed, violations: violations(evidence), evidence, story };
  } catch (error) {
    return { seed, violations: [String(error)], story };
  }
};

const main = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "1000" },
      seed: { type: "string", default: String(Date.now() % 1_000_000_000) },
      "at-once": { type: "string", default: "16" },
      dynalite: { type: "boolean" },
    },
  });
  const runs = wholeNumber(values.runs);
  const seed = wholeNumber(values.seed);
  const atOnce = wholeNumber(values["at-once"]);
  // An exit ends the engine and the runners too; a signal's own way to end a process wouldn't.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  const engine = await startEngine(values.dynalite);
  const theatre = await openTheatre({ endpoint: engine.endpoint, spares: atOnce });
  const tally = newTally();
  const startedMs = Date.now();
  const sinceStart = () => `${Math.round((Date.now() - startedMs) / 1000)} s`;
  let [played, failed] = [0, 0];
  console.log(`${runs} runs from seed ${seed} on ${engine.name}`);
  try {
    await playMany(theatre, {
      seed,
      runs,
      atOnce,
      onPlayed: (one) => {
        if (one.evidence) tally.add(one.evidence);
        if (one.violations.length > 0) {
          failed++;
          console.log(storyOf(one));
        }
        if (++played % 50 === 0) console.log(`${played} runs, ${failed} failed, ${sinceStart()}`);
      },
    });
  } finally {
    await theatre.close();
    await engine.close();
  }
  const missing = runs >= MANY ? tally.missing() : [];
  for (const line of tally.report()) console.log(line);
  if (missing.length > 0) console.log(`never seen: ${missing.join(", ")}`);
  console.log(`${played - failed} runs clean, ${failed} failed, in ${sinceStart()}`);
  if (failed > 0 || missing.length > 0) process.exitCode = 1;
};

const wholeNumber = (text: string): number => {
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} must be a whole number`);
  return value;
};

export const storyOf = ({ seed, violations, story }: Played): string =>
  [
    `Seed ${seed} failed: npm run kill -- --runs 1 --seed ${seed}`,
    ...violations.map((violation) => `  ${violation}`),
    ...story,
  ].join("\n");

if (process.argv[1] === import.meta.filename) await main();
