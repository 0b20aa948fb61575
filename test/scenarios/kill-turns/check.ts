/** What must hold after a run, whoever died in it. Each sentence says what doesn't. */
import { isDeepStrictEqual } from "node:util";
import { INTERRUPTED, OUTCOME_UNKNOWN } from "../../../lib/agent/results.ts";
import type { MessageJson } from "../../../lib/session/message.ts";
import {
  answerTo,
  DONE,
  EFFECTS,
  type Effected,
  effectOf,
  type Line,
  resultOf,
  type Script,
  SYSTEM,
} from "./agent.ts";
import type { Evidence, TurnOfHistory } from "./evidence.ts";

export const violations = (evidence: Evidence): string[] => [
  ...evidence.faults,
  ...toldOnce(evidence),
  ...inOrder(evidence),
  ...whole(evidence),
  ...effected(evidence),
];

/** Who asks for a turn is told the same, always. */
const toldOnce = ({ turns }: Evidence): string[] =>
  [...turns].flatMap(([turn, { outcomes }]) => {
    const [first, ...others] = outcomes.map((outcome) =>
      outcome.kind === "done" ? outcome.answer : outcome.kind,
    );
    return [
      ...(others.every((other) => isDeepStrictEqual(other, first))
        ? []
        : [`${turn} has more than one outcome`]),
      ...(outcomes.filter((outcome) => outcome.kind === "done" && !outcome.replayed).length > 1
        ? [`${turn} was run more than once`]
        : []),
    ];
  });

/** The history is the acknowledged turns, each once, as it was acknowledged, in order; and nothing else. */
const inOrder = ({ turns: asked, history }: Evidence): string[] => {
  const { head, turns, messages } = history;
  const found: string[] = [];
  const expect = (holds: boolean, otherwise: string): void => {
    if (!holds) found.push(otherwise);
  };
  const answers = [...asked.values()].flatMap(({ outcomes: [outcome] }) =>
    outcome?.kind === "done" ? [outcome.answer] : [],
  );
  for (const answer of answers) {
    const { turn_id, version, finish, messages = [] } = turns[answer.version - 2] ?? {};
    const final = finish === "final" ? messages.at(-1)?.content : "";
    expect(
      isDeepStrictEqual({ turn_id, version, finish, messages, final }, answer),
      `${answer.turn_id} isn't in the history as it was acknowledged`,
    );
  }
  expect(
    turns.length === answers.length,
    `${answers.length} turns were acknowledged, and the history has ${turns.length}`,
  );
  expect(
    head.version === turns.length + 1,
    `the version is ${head.version} after ${turns.length} turns`,
  );
  expect(head.turn_count === turns.length, `${head.turn_count} turns are counted`);
  expect(head.message_count === messages.length, `${head.message_count} messages are counted`);
  expect(head.turn === null, `a turn is still open: ${JSON.stringify(head.turn)}`);
  expect(
    isDeepStrictEqual(
      messages,
      turns.flatMap((turn) => turn.messages),
    ),
    "the messages aren't those of the turns",
  );
  const times = turns.flatMap(({ turn_id }) => asked.get(turn_id) ?? []);
  expect(
    times.every(({ sent }, n) => times.slice(n).every(({ told }) => told > sent)),
    "a turn stands before one that was acknowledged when it was sent",
  );
  return found;
};

/** No turn is in the history but whole, and decided on all that stands before it. */
const whole = ({ history, turns: asked }: Evidence): string[] => {
  let before: readonly MessageJson[] = [];
  return history.turns.flatMap((turn) => {
    const sound = isSound(turn, asked.get(turn.turn_id)?.input ?? "{}", before);
    before = [...before, ...turn.messages];
    return sound ? [] : [`${turn.turn_id} isn't what its input asks for, on that history`];
  });
};

const isSound = (
  { finish, messages }: TurnOfHistory,
  input: string,
  before: readonly MessageJson[],
): boolean => {
  const { steps, resultBytes }: Script = JSON.parse(input);
  const said = messages.filter(({ role }) => role === "assistant");
  const done = said.slice(0, -1);
  const roles = [...(before.length === 0 ? ["system"] : []), "user"];
  const shape = [
    ...roles,
    ...done.flatMap(({ tool_calls }) => ["assistant", ...tool_calls.map(({ id }) => id)]),
    "assistant",
  ];
  const asked = done.map(({ tool_calls }) => tool_calls.map(({ name }) => name));
  const last = messages.at(-1);
  const isFinal = finish === "final";
  return (
    isDeepStrictEqual(
      messages.map(({ role, tool_call_id }) => tool_call_id ?? role),
      shape,
    ) &&
    messages[0]?.content === (before.length === 0 ? SYSTEM : input) &&
    messages[roles.length - 1]?.content === input &&
    isDeepStrictEqual(asked, isFinal ? steps : steps.slice(0, asked.length)) &&
    last?.content ===
      (isFinal ? answerTo([...before, ...messages.slice(0, -1)]) : "(interrupted)") &&
    callsOf(messages).every(({ id, name, result }) =>
      [
        resultOf(id, resultBytes),
        ...(isFinal ? [] : [INTERRUPTED]),
        ...(effectOf(name) === "once" ? [OUTCOME_UNKNOWN] : []),
      ].includes(result),
    )
  );
};

/** A call has one key, and a key one call; `once` runs once; and nothing runs that nobody knows of. */
const effected = ({ lines, history, turns }: Evidence): string[] => {
  const started = effectsOf(lines, "started");
  const ended = new Set(effectsOf(lines, "ended").map(({ call }) => call));
  const calls = history.turns.flatMap(({ turn_id, messages }) =>
    callsOf(messages).map((call) => ({ ...call, turn: turn_id })),
  );
  const known = new Set(calls.map(({ turn, id }) => `${turn} ${id}`));
  const isGivenUp = (turn: string) => turns.get(turn)?.outcomes[0]?.kind === "superseded";
  const found: string[] = [];

  for (const [place, group] of Map.groupBy(started, placeOf)) {
    if (distinct(group, "call") > 1) found.push(`${place} ran for two calls of the model`);
    if (distinct(group, "key") > 1) found.push(`${place} ran under two keys`);
    if (group.length > 1 && group.some(({ tool }) => EFFECTS[tool] === "once"))
      found.push(`${place} ran ${group.length} times`);
    if (group.some(({ turn, call }) => !known.has(`${turn} ${call}`) && !isGivenUp(turn)))
      found.push(`${place} ran, and no call of it is in the history`);
  }
  for (const group of Map.groupBy(started, ({ key }) => key).values()) {
    if (distinct(group, "call") > 1)
      found.push(`${[...new Set(group.map(placeOf))].join(" and ")} ran under one key`);
  }
  for (const { turn, id, name, result } of calls) {
    const isDone = effectOf(name) !== "none" && result.startsWith(DONE);
    if (isDone && !ended.has(id)) found.push(`${turn} has a result of ${name}, which never ran`);
  }
  return found;
};

const effectsOf = (lines: readonly Line[], event: Effected["event"]): Effected[] =>
  lines
    .filter((line) => line.event !== "asked")
    .filter((line) => line.event === event && EFFECTS[line.tool] !== "none");

const placeOf = ({ turn, place, tool }: Effected): string => `${turn} ${place.join(".")} ${tool}`;

const distinct = (lines: readonly Effected[], field: "call" | "key"): number =>
  new Set(lines.map((line) => line[field])).size;

/** Each with the result that stands right behind it, as `isSound` has seen to. */
const callsOf = (messages: readonly MessageJson[]) => {
  const results = new Map(messages.map(({ tool_call_id, content }) => [tool_call_id, content]));
  return messages.flatMap(({ tool_calls }) =>
    tool_calls.map(({ id, name }) => ({ id, name, result: results.get(id) ?? "" })),
  );
};
