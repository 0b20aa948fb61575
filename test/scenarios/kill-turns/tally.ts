/** What was seen in many runs. */
import { OUTCOME_UNKNOWN } from "../../../lib/agent/results.ts";
import type { Effect } from "../../../lib/agent/tool.ts";
import type { MessageJson } from "../../../lib/session/message.ts";
import { EFFECTS, type Effected, type Line } from "./agent.ts";
import type { Evidence, Outcome } from "./evidence.ts";
import { POINTS } from "./points.ts";

export interface Tally {
  add(evidence: Evidence): void;
  /** What was never seen, though it happens in any larger number of runs. */
  missing(): string[];
  report(): string[];
}

export const newTally = (): Tally => {
  const counts = new Map<string, number>();
  const of = (name: string): number => counts.get(name) ?? 0;
  const count = (name: string, by = 1): void => void counts.set(name, of(name) + by);
  let longestWaitMs = 0;

  const add = (evidence: Evidence): void => {
    const { turns, history, lines, kills, waitsMs } = evidence;
    for (const { how, point } of kills) count(`${how} ${point}`);
    for (const { outcomes } of turns.values()) {
      count(finishOf(outcomes[0]));
      // The last one comes after everything, and always gets a replay.
      for (const outcome of outcomes.slice(0, -1)) {
        if (outcome.kind === "done" && outcome.replayed) count("replays");
      }
    }
    count("resumes", resumesIn(evidence));
    count("unknown outcomes", history.messages.filter(isUnknown).length);
    count("effects", effectsIn(lines, "once").length + effectsIn(lines, "idempotent").length);
    const keys = effectsIn(lines, "idempotent").map(({ key }) => key);
    count("repeats under one key", keys.length - new Set(keys).size);
    longestWaitMs = Math.max(longestWaitMs, ...waitsMs);
  };

  const list = (names: readonly string[]): string =>
    names.map((name) => `${of(name)} ${name}`).join(", ");
  const sum = (how: string): number =>
    POINTS.reduce((all, point) => all + of(`${how} ${point}`), 0);

  return {
    add,
    missing: () => [...POINTS.map((point) => `at ${point}`), ...SEEN].filter((name) => !of(name)),
    report: () => [
      `turns: ${list(FINISHES)}`,
      `kills: ${sum("at") + sum("after")}`,
      `  ${sum("at")} at a point: ${POINTS.map((point) => `${point} ${of(`at ${point}`)}`).join(", ")}`,
      `  ${sum("after")} at any moment, the last point being: ${POINTS.map((point) => `${point} ${of(`after ${point}`)}`).join(", ")}`,
      list(["resumes", "replays", "unknown outcomes", "effects", "repeats under one key"]),
      `longest wait for an outcome after a kill: ${(longestWaitMs / 1000).toFixed(1)} s`,
    ],
  };
};

const FINISHES = ["final", "interrupted", "superseded"];
const SEEN = [...FINISHES, "resumes", "replays", "unknown outcomes", "repeats under one key"];

const finishOf = (outcome: Outcome | undefined): string =>
  outcome?.kind === "done" ? outcome.answer.finish : "superseded";

const isUnknown = ({ content }: MessageJson): boolean => content === OUTCOME_UNKNOWN;

const effectsIn = (lines: readonly Line[], effect: Effect): Effected[] =>
  lines
    .filter((line) => line.event !== "asked")
    .filter(({ event, tool }) => event === "started" && EFFECTS[tool] === effect);

/** A process that asks the model in the middle of a turn goes on from what another one kept. */
const resumesIn = ({ lines }: Evidence): number => {
  const asked = lines.filter((line) => line.event === "asked");
  const firsts = Map.groupBy(asked, ({ turn, pid }) => `${turn} ${pid}`);
  return [...firsts.values()].filter(([first]) => first && first.step > 0).length;
};
