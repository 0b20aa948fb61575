/**
 * Turns whose runners die by SIGKILL at a named point, and callers who come again with the same key.
 * The retry, the next turns and the last callers run on other processes. `npm run kill` does it at random.
 */
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { INTERRUPTED, OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { noise, type ToolName } from "./kill-turns/agent.ts";
import { violations } from "./kill-turns/check.ts";
import type { Evidence } from "./kill-turns/evidence.ts";
import { alone, scripted } from "./kill-turns/plan.ts";
import type { Stage } from "./kill-turns/play.ts";
import type { Point } from "./kill-turns/points.ts";
import { openTheatre, playMany, storyOf, type Theatre } from "./kill-turns.ts";

const endpoint = inject("dynamodbLocal") ?? inject("dynalite");

/** Runners never lose their lease, however busy the machine is; the time of a dead one's is skipped. */
const PATIENT = { leaseSeconds: 30, skipsLeases: true };

const RUNS = 30;
const AT_ONCE = 12;

vi.setConfig({ testTimeout: 120_000 });

let theatre: Theatre;

beforeAll(async () => {
  theatre = await openTheatre({ endpoint, spares: 4, ...PATIENT });
});

afterAll(() => theatre.close());

interface Story {
  readonly when: Point;
  readonly nth?: number;
  readonly what: string;
  readonly modelMs?: number;
  /** The steps that the model was asked for, process by process. */
  readonly asked: readonly (readonly number[])[];
  /** How often each tool began. */
  readonly pays: number;
  readonly puts: number;
  /** What the model was told of `pay`. */
  readonly paid: "done" | "unknown";
  readonly isReplayed?: boolean;
}

/** The turn asks for `pay` (once) and `put` (idempotent) at the same time, and then answers. */
describe.concurrent("a turn whose runner is killed, and its retry", () => {
  const anew: Pick<Story, "asked" | "pays" | "puts" | "paid"> = {
    asked: [[0], [0, 1]],
    pays: 1,
    puts: 1,
    paid: "done",
  };
  const goesOn = { asked: [[0], [1]], paid: "unknown" } as const;
  const replayed = { ...anew, asked: [[0, 1]], isReplayed: true };

  test.each<Story>([
    {
      when: "before the claim",
      what: "it runs as if nothing had been",
      ...anew,
      asked: [[0, 1]],
    },
    { when: "in the first model call", what: "it runs anew", ...anew },
    { when: "before the intent", what: "no tool has run, and it runs anew", ...anew },
    {
      when: "after the intent",
      what: "no tool has run; the once call isn't run, since nobody knows that, and the other one is",
      ...goesOn,
      pays: 0,
      puts: 1,
    },
    {
      when: "in a tool",
      nth: 2,
      what: "both have begun; the once call isn't repeated, and the other one is, under its key",
      ...goesOn,
      pays: 1,
      puts: 2,
    },
    {
      when: "after a tool",
      nth: 2,
      what: "both are done and not recorded; the once call isn't repeated, and the other one is, under its key",
      ...goesOn,
      pays: 1,
      puts: 2,
    },
    {
      when: "after the outcome",
      modelMs: 500,
      what: "in the model call after the results: no tool runs again, and the model is asked again",
      ...anew,
      asked: [[0, 1], [1]],
    },
    {
      when: "before the commit",
      what: "no tool runs again, and the model is asked again",
      ...anew,
      asked: [[0, 1], [1]],
    },
    { when: "after the commit", what: "the answer is replayed, and nothing runs", ...replayed },
    { when: "before the answer", what: "the answer is replayed, and nothing runs", ...replayed },
  ])("$when: $what", async (story) => {
    const { when, nth = 1, modelMs = 0, asked, pays, puts, paid, isReplayed = false } = story;
    const session = `story-${when.replaceAll(" ", "-")}`;
    const caller = scripted(session, "killed", { steps: [["pay", "put"]], modelMs });
    const stage = theatre.stage(session);
    await stage.play(alone(scripted(session, "before")));
    await stage.play(alone(caller, { at: when, nth }));
    await stage.play(alone(scripted(session, "after")));
    const evidence = await stage.end();

    expect(violations(evidence), stage.story.join("\n")).toEqual([]);
    expect(evidence.kills).toEqual([{ how: "at", point: when }]);
    expect(turnsOf(evidence)).toEqual(["before final", "killed final", "after final"]);
    expect(callsOf(evidence, "killed")).toEqual([`pay ${paid}`, "put done"]);
    expect(askedOf(evidence, "killed")).toEqual(asked);
    expect(startsOf(evidence, "pay")).toBe(pays);
    expect(startsOf(evidence, "put")).toBe(puts);
    const [told] = evidence.turns.get("killed")?.outcomes ?? [];
    expect(told).toMatchObject({ kind: "done", replayed: isReplayed });
  });

  test("after the segment: HEAD doesn't know of it yet; no turn is lost, and the retry adopts it", async () => {
    const session = "story-segment";
    const stage = theatre.stage(session);
    const callers = [0, 1, 2, 3].map((n) =>
      scripted(session, `turn-${n}`, { modelMs: n === 2 ? 1000 : 0, pad: noise(`${n}`, 1900) }),
    );
    for (const [n, caller] of callers.entries()) {
      const kills = n === 2 ? [{ at: "after the segment", nth: 1 } as const] : [];
      await stage.play(alone(caller, ...kills));
    }
    const evidence = await stage.end();
    expect(violations(evidence), stage.story.join("\n")).toEqual([]);
    expect(evidence.kills).toEqual([{ how: "at", point: "after the segment" }]);
    expect(turnsOf(evidence)).toEqual([0, 1, 2, 3].map((n) => `turn-${n} final`));
  });
});

describe.concurrent("a turn whose runner is killed while another caller waits", () => {
  const killed = { steps: [["pay", "put"]] } as const;

  test.each([
    {
      when: "in a tool",
      what: "it has lost its place for good, and its tools don't run again",
      turns: ["waits final"],
    },
    {
      when: "in the first model call",
      what: "it has done nothing yet, and its retry runs it behind the other",
      turns: ["waits final", "killed final"],
    },
  ] as const)("$when: the other gets the session; $what", async ({ when, turns }) => {
    const session = `wait-${when.replaceAll(" ", "-")}`;
    const caller = scripted(session, "killed", killed);
    const stage = theatre.stage(session);
    const cut = stage.cut(caller, { at: when, nth: 1, ms: 300 });
    await reached(stage, when);
    const waiting = stage.play(alone({ ...scripted(session, "waits"), onBusy: "wait" }));
    await cut;
    await stage.skipLease();
    await waiting;
    await stage.play(alone(caller));
    const evidence = await stage.end();

    expect(violations(evidence), stage.story.join("\n")).toEqual([]);
    expect(evidence.kills).toEqual([{ how: "at", point: when }]);
    expect(turnsOf(evidence)).toEqual(turns);
    expect(startsOf(evidence, "pay")).toBe(1);
  });

  test("for the same turn: it goes on from what is kept", async () => {
    const caller = scripted("wait-same", "killed", killed);
    const stage = theatre.stage("wait-same");
    const cut = stage.cut(caller, { at: "in a tool", nth: 2, ms: 300 });
    await reached(stage, "in a tool");
    const waiting = stage.play(alone({ ...caller, onBusy: "wait" }));
    await cut;
    await stage.skipLease();
    await waiting;
    const evidence = await stage.end();

    expect(violations(evidence), stage.story.join("\n")).toEqual([]);
    expect(turnsOf(evidence)).toEqual(["killed final"]);
    expect(callsOf(evidence, "killed")).toEqual(["pay unknown", "put done"]);
    expect([startsOf(evidence, "pay"), startsOf(evidence, "put")]).toEqual([1, 2]);
  });
});

test("a turn whose runner is killed, and that is interrupted then: what it began is history, and its retry is told so", async () => {
  const caller = scripted("interrupted", "killed", { steps: [["pay", "put"]] });
  const stage = theatre.stage("interrupted");
  await stage.cut(caller, { at: "in a tool", nth: 2 });
  await stage.play(alone({ ...scripted("interrupted", "other"), onBusy: "interrupt" }));
  await stage.play(alone(caller));
  const evidence = await stage.end();

  expect(violations(evidence), stage.story.join("\n")).toEqual([]);
  expect(turnsOf(evidence)).toEqual(["killed interrupted", "other final"]);
  expect(callsOf(evidence, "killed")).toEqual(["pay interrupted", "put interrupted"]);
  expect([startsOf(evidence, "pay"), startsOf(evidence, "put")]).toEqual([1, 1]);
});

test(`${RUNS} random runs: every turn is told once and stands once, and no effect is doubled`, async () => {
  const impatient = await openTheatre({ endpoint, spares: AT_ONCE });
  onTestFinished(() => impatient.close());
  const played = await playMany(impatient, { seed: 1, runs: RUNS, atOnce: AT_ONCE });
  const failed = played.filter((one) => one.violations.length > 0);
  expect(failed.map(storyOf)).toEqual([]);
  const kills = played.flatMap(({ evidence }) => evidence?.kills ?? []);
  expect(kills.length).toBeGreaterThanOrEqual(RUNS);
});

const reached = (stage: Stage, point: Point): Promise<void> =>
  expect.poll(() => stage.story.join("\n"), { timeout: 30_000 }).toContain(`is ${point}`);

const turnsOf = ({ history }: Evidence): string[] =>
  history.turns.map(({ turn_id, finish }) => `${turn_id} ${finish}`);

const callsOf = ({ history }: Evidence, turn: string): string[] => {
  const messages = history.turns.find(({ turn_id }) => turn_id === turn)?.messages ?? [];
  const results = new Map(messages.map(({ tool_call_id, content }) => [tool_call_id, content]));
  const calls = messages.flatMap(({ tool_calls }) => tool_calls);
  return calls.map(({ id, name }) => `${name} ${NAMES.get(results.get(id) ?? "") ?? "done"}`);
};

const NAMES = new Map([
  [OUTCOME_UNKNOWN, "unknown"],
  [INTERRUPTED, "interrupted"],
]);

/** The steps that the model was asked for, process by process. */
const askedOf = ({ lines }: Evidence, turn: string): number[][] => {
  const asked = lines.filter((line) => line.event === "asked").filter((line) => line.turn === turn);
  return [...Map.groupBy(asked, ({ pid }) => pid).values()].map((each) =>
    each.map(({ step }) => step),
  );
};

const startsOf = ({ lines }: Evidence, name: ToolName): number =>
  lines.filter((line) => line.event === "started" && line.tool === name).length;
