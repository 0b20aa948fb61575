/** What is checked after each run with killed runners: where it doesn't hold, that is found. */
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import type { Effected, Line } from "./kill-turns/agent.ts";
import { violations } from "./kill-turns/check.ts";
import type { AskedTurn, Evidence, Outcome, TurnOfHistory } from "./kill-turns/evidence.ts";
import { alone, scripted } from "./kill-turns/plan.ts";
import { openTheatre, type Theatre } from "./kill-turns.ts";

let theatre: Theatre;
/** Two turns, one after the other; the first one pays and puts. */
let sound: Evidence;

beforeAll(async () => {
  const endpoint = inject("dynamodbLocal") ?? inject("dynalite");
  theatre = await openTheatre({ endpoint, leaseSeconds: 4, spares: 1 });
  const stage = theatre.stage("checked");
  await stage.play(alone(scripted("checked", "one", { steps: [["pay", "put"]] })));
  await stage.play(alone(scripted("checked", "two")));
  sound = await stage.end();
});

afterAll(() => theatre.close());

test("a run in which all holds has no violations", () => {
  expect(violations(sound)).toEqual([]);
});

type Tamper = (evidence: Evidence) => Partial<Evidence>;

/** In the history and its counts; not in what was acknowledged. */
const turns =
  (change: (turns: readonly TurnOfHistory[]) => readonly TurnOfHistory[]): Tamper =>
  ({ history }) => {
    const changed = change(history.turns);
    const messages = changed.flatMap((turn) => turn.messages);
    const head = { ...history.head, version: changed.length + 1, turn_count: changed.length };
    return {
      history: { head: { ...head, message_count: messages.length }, turns: changed, messages },
    };
  };

const head =
  (change: Partial<Evidence["history"]["head"]>): Tamper =>
  ({ history }) => ({ history: { ...history, head: { ...history.head, ...change } } });

const asked =
  (turn: string, change: (asked: AskedTurn) => Partial<AskedTurn>): Tamper =>
  (evidence) => {
    const before = evidence.turns.get(turn);
    if (!before) throw new Error(`There is no ${turn}.`);
    return { turns: new Map(evidence.turns).set(turn, { ...before, ...change(before) }) };
  };

/** What callers of the first turn were told. */
const told = (change: (outcomes: readonly Outcome[]) => readonly Outcome[]): Tamper =>
  asked("one", ({ outcomes }) => ({ outcomes: change(outcomes) }));

const lines =
  (change: (line: Line) => readonly Line[]): Tamper =>
  (evidence) => ({ lines: evidence.lines.flatMap(change) });

/** Of that tool, where it starts. */
const starts = (tool: string, change: (line: Effected) => readonly Line[]): Tamper =>
  lines((line) => (line.event === "started" && line.tool === tool ? change(line) : [line]));

test.each<readonly [what: string, tamper: Tamper, found: string]>([
  [
    "a turn that is lost",
    turns((all) => all.slice(0, 1)),
    "2 turns were acknowledged, and the history has 1",
  ],
  [
    "a turn that stands twice",
    turns((all) => [...all, ...all.slice(1)]),
    "2 turns were acknowledged, and the history has 3",
  ],
  [
    "a turn that stands where another one was acknowledged",
    turns((all) => all.toReversed()),
    "two isn't in the history as it was acknowledged",
  ],
  [
    "a turn before one that was acknowledged earlier",
    asked("two", () => ({ told: -1 })),
    "a turn stands before one that was acknowledged when it was sent",
  ],
  [
    "a call without its result",
    turns((all) => all.map((turn) => ({ ...turn, messages: turn.messages.toSpliced(3, 1) }))),
    "one isn't what its input asks for, on that history",
  ],
  [
    "a turn that was decided on another history",
    turns((all) =>
      all.map((turn, n) => ({ ...turn, messages: turn.messages.slice(n === 0 ? 1 : 0) })),
    ),
    "two isn't what its input asks for, on that history",
  ],
  [
    "a turn that is left open",
    head({ turn: { turn_id: "two" } }),
    'a turn is still open: {"turn_id":"two"}',
  ],
  ["a wrong version", head({ version: 2 }), "the version is 2 after 2 turns"],
  ["a wrong count", head({ message_count: 3 }), "3 messages are counted"],
  [
    "another answer to a retry",
    told((all) => [...all, { kind: "superseded" }]),
    "one has more than one outcome",
  ],
  [
    "a turn that runs again for a retry",
    told((all) => [...all, ...all]),
    "one was run more than once",
  ],
  [
    "a once call that is repeated",
    starts("pay", (line) => [line, line]),
    "one 0.0 pay ran 2 times",
  ],
  [
    "an idempotent call that is repeated under another key",
    starts("put", (line) => [line, { ...line, key: "other" }]),
    "one 0.1 put ran under two keys",
  ],
  [
    "a call that runs again because the model was asked again",
    starts("put", (line) => [{ ...line, call: "other" }, line]),
    "one 0.1 put ran for two calls of the model",
  ],
  [
    "a call that nobody knows of",
    starts("pay", (line) => [{ ...line, call: "other" }]),
    "one 0.0 pay ran, and no call of it is in the history",
  ],
  [
    "two calls under one key",
    lines((line) => ("key" in line ? [{ ...line, key: "same" }] : [line])),
    "one 0.0 pay and one 0.1 put ran under one key",
  ],
  [
    "a result without an effect",
    lines((line) => ("key" in line ? [] : [line])),
    "one has a result of pay, which never ran",
  ],
])("%s is found", (_, tamper, found) => {
  expect(violations({ ...sound, ...tamper(sound) })).toContain(found);
});
