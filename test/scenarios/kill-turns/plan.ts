/** What happens in one run, drawn from a seed: turns, their callers, and when their runners die. */
import { createHash } from "node:crypto";
import type { OnBusy } from "../../../lib/turns/request.ts";
import { EFFECTS, noise, type Script, type ToolName } from "./agent.ts";
import { POINTS, type Point, type Stop } from "./points.ts";

/** One after the other; each begins when every caller of the one before has got an outcome. */
export interface Plan {
  readonly session: string;
  readonly rounds: readonly Round[];
}

export interface Round {
  /** The first one's runner is killed. */
  readonly callers: readonly Caller[];
  /** One for each runner that the first caller meets. */
  readonly kills: readonly Kill[];
  /** Whether the second caller has a runner of its own, or shares the first one's fate. */
  readonly apart: boolean;
}

export interface Caller {
  readonly turn: string;
  readonly input: string;
  readonly onBusy: OnBusy;
  /** How much later than the other one of its round it comes. */
  readonly delayMs?: number;
}

/** At a point exactly, where it may stand for a while before; or some time after one. */
export type Kill =
  | (Stop & { readonly ms?: number })
  | { readonly after: Point; readonly ms: number };

/** A turn that does nothing but what is asked for. */
export const scripted = (
  session: string,
  turn: string,
  script: Partial<Omit<Script, "session" | "turn">> = {},
): Caller => {
  const plain = { steps: [], modelMs: 0, toolMs: 0, resultBytes: 0, pad: "" };
  return { turn, onBusy: "reject", input: inputOf({ session, turn, ...plain, ...script }) };
};

export const alone = (caller: Caller, ...kills: readonly Kill[]): Round => ({
  callers: [caller],
  kills,
  apart: false,
});

export const planOf = (seed: number): Plan => {
  const draw = drawFrom(seed);
  const session = `kill-${seed}`;
  const isLarge = draw.chance(0.4);

  const callerOf = (turn: string): Caller => ({
    turn,
    onBusy: draw.chance(0.7) ? "reject" : "wait",
    input: inputOf({
      session,
      turn,
      steps: Array.from({ length: draw.below(4) }, () =>
        Array.from({ length: 1 + draw.below(3) }, () => draw.from(TOOLS)),
      ),
      modelMs: 2 + draw.below(10),
      toolMs: draw.below(6),
      resultBytes: isLarge ? draw.from([0, 500, 3000]) : 0,
      pad: noise(`${seed} ${turn}`, isLarge ? draw.from([100, 1200, 2500, 9000]) : 0),
    }),
  });

  const secondOf = (turn: string, first: Caller): Caller => ({
    ...(draw.chance(0.3) ? first : callerOf(turn)),
    onBusy: draw.from(["reject", "wait", "interrupt", "rollback"]),
    delayMs: draw.below(150),
  });

  const killOf = (script: Script): Kill => {
    const point = draw.from(pointsOf(script));
    return draw.chance(0.6)
      ? { at: point, nth: draw.chance(0.8) ? 1 : 2 }
      : { after: point, ms: draw.below(50) };
  };

  const rounds = Array.from({ length: 2 + draw.below(2) }, (_, n): Round => {
    const first = callerOf(`turn-${n}`);
    const script: Script = JSON.parse(first.input);
    const kills = [
      ...(n === 0 || draw.chance(0.5) ? [killOf(script)] : []),
      ...(draw.chance(0.2) ? [killOf(script)] : []),
    ];
    const second = draw.chance(0.35) ? [secondOf(`turn-${n}b`, first)] : [];
    return { callers: [first, ...second], kills, apart: draw.chance(0.6) };
  });
  return { session, rounds };
};

const inputOf = (script: Script): string => JSON.stringify(script);

const TOOLS: readonly ToolName[] = ["pay", "put", "look"];

/** Those that a turn passes, or may. */
const pointsOf = ({ steps }: Script): Point[] => {
  const hasEffects = steps.flat().some((name) => EFFECTS[name] !== "none");
  return POINTS.filter((point) => {
    if (/intent|outcome/.test(point)) return hasEffects;
    return !/tool|later/.test(point) || steps.length > 0;
  });
};

/** The same seed draws the same. */
const drawFrom = (seed: number) => {
  let count = 0;
  const fraction = (): number =>
    createHash("sha256").update(`${seed} ${count++}`).digest().readUInt32BE() / 2 ** 32;
  const below = (end: number): number => Math.floor(fraction() * end);
  return {
    below,
    chance: (probability: number): boolean => fraction() < probability,
    from: <T>(values: readonly T[]): T => {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error("There is nothing to draw from.");
      return value;
    },
  };
};
