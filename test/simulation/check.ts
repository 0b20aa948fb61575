/** The invariants of the turn protocol, checked on what a run has left and on what its clients were told. */
import { isDeepStrictEqual } from "node:util";
import type { Message } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import { StoreUnavailableError } from "../../lib/store/errors.ts";
import type { Head, RecentTurn } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Answer, Delivery, Effect, Log } from "./log.ts";

/** The session as it stands in the end; absent where it doesn't. */
export interface End {
  /** So short that it may have expired meanwhile. */
  readonly isShortLived: boolean;
  readonly head: Head;
  /** All of it, read by a process that knows nothing yet. */
  readonly history: readonly DoneTurn[];
  /** Of a turn that isn't in HEAD any more. */
  readonly record: (turnId: string) => RecentTurn | undefined;
}

/** What is wrong, in words; nothing where all holds. */
export const violations = (log: Log, end: End | undefined): string[] => [
  ...log.faults,
  ...oneAnswerPerTurn(log),
  ...onceEffects(log.effects),
  ...notAppliedWhereSaid(log, end),
  ...livesThatEnded(log, end),
  ...(end ? [...historyOf(log, end), ...recordsOfEffects(log, end)] : []),
];

/** A session that isn't the last one of its id was deleted by somebody, or has expired. */
const livesThatEnded = ({ answers, deleted }: Log, end: End | undefined): string[] => {
  if (!end || end.isShortLived) return [];
  const ended = new Set(answers.map(({ delivery }) => delivery.incarnation));
  return [...ended]
    .filter((it) => it !== undefined && it !== end.head.incarnation && !deleted.has(it))
    .map((it) => `the session ${it} is gone, and nobody deleted it`);
};

const oneAnswerPerTurn = ({ answers }: Log): string[] => {
  const first = new Map<string, Answer>();
  return answers.flatMap((answer) => {
    const { delivery, result } = answer;
    const name = `${delivery.incarnation}/${result.turnId}`;
    const known = first.get(name);
    if (!known) {
      first.set(name, answer);
      return [];
    }
    return isSame(known, answer)
      ? []
      : [`${delivery.name} got another answer for ${result.turnId} than ${known.delivery.name}`];
  });
};

const isSame = ({ result: a }: Answer, { result: b }: Answer): boolean =>
  a.version === b.version && a.final === b.final && isDeepStrictEqual(a.messages, b.messages);

const historyOf = (log: Log, { head, history }: End): string[] => {
  const faults: string[] = [];
  const ids = history.map(({ turnId }) => turnId);
  for (const [n, id] of ids.entries()) {
    if (ids.indexOf(id) !== n) faults.push(`turn ${id} is in the history twice`);
  }
  if (history.length !== head.version - 1) faults.push("the history isn't as long as its version");
  if (history.reduce((sum, { messages }) => sum + messages.length, 0) !== head.counts.messages) {
    faults.push("the messages are miscounted");
  }

  for (const { delivery, result } of log.answers) {
    if (delivery.incarnation !== head.incarnation) continue;
    const turn = history[result.version - 2];
    if (turn?.turnId !== result.turnId) {
      faults.push(
        `${delivery.name}: turn ${result.turnId} was acknowledged, and isn't in its place`,
      );
    } else if (!isDeepStrictEqual(turn.messages, result.messages)) {
      faults.push(`${delivery.name}: turn ${result.turnId} isn't as it was acknowledged`);
    }
  }

  const inputs = new Map(log.deliveries.map(({ name, input }) => [name, input]));
  for (const { messages, turnId } of history) {
    const input = messages.find(({ role }) => role === "user")?.content;
    for (const { id } of messages.flatMap(({ toolCalls }) => toolCalls)) {
      if (inputs.get(id.split(".")[0] ?? "") !== input) {
        faults.push(`turn ${turnId} went on with steps of another input`);
      }
    }
  }

  const before = prefixes(history);
  for (const delivery of log.deliveries) {
    const { name, modelCalls, answersBefore } = delivery;
    for (const { granted, history: shown } of modelCalls) {
      if (granted?.incarnation !== head.incarnation) continue;
      if (!isDeepStrictEqual(spoken(shown), before[granted.version - 1])) {
        faults.push(`${name} was decided on something that isn't the history before it`);
      }
      const acknowledged = log.answers
        .slice(0, answersBefore)
        .filter((answer) => answer.delivery.incarnation === head.incarnation)
        .map(({ result }) => result.version);
      if (Math.max(0, ...acknowledged) > granted.version) {
        faults.push(`${name} didn't see a turn that was acknowledged before it began`);
      }
    }
  }
  return faults;
};

/** The messages before each turn, but for the prompt. */
const prefixes = (history: readonly DoneTurn[]): (readonly Message[])[] => {
  const all: (readonly Message[])[] = [[]];
  for (const { messages } of history) all.push([...(all.at(-1) ?? []), ...spoken(messages)]);
  return all;
};

const spoken = (messages: readonly Message[]): readonly Message[] =>
  messages.filter(({ role }) => role !== "system");

/** What a try that was told to have failed answered can't be in the history. */
const notAppliedWhereSaid = ({ deliveries }: Log, end: End | undefined): string[] => {
  const texts = new Set(end?.history.flatMap(({ messages }) => messages.map((it) => it.content)));
  return deliveries
    .filter(({ outcome }) => outcome?.kind === "error" && !isUnknown(outcome.error))
    .filter(({ modelCalls }) => modelCalls.some(({ reply }) => reply && texts.has(reply)))
    .map(({ name }) => `${name} was told to have failed, and is in the history`);
};

const isUnknown = (error: unknown): boolean => error instanceof StoreUnavailableError;

const onceEffects = (effects: readonly Effect[]): string[] => {
  const faults: string[] = [];
  const firstAt = new Map<string, Effect>();
  const firstOf = new Map<string, Effect>();
  for (const effect of effects.filter(({ tool }) => tool !== "none")) {
    const { granted, call, tool, key, turnId, isKept } = effect;
    if (!isKept) faults.push(`${tool} ran for ${call} before the call was kept`);
    const known = firstOf.get(call);
    if (known && tool === "once") faults.push(`once ran twice for ${call}`);
    if (known && known.key !== key) faults.push(`${call} ran under two keys`);
    firstOf.set(call, effect);
    const place = `${granted?.incarnation}/${turnId}/${call.split("@")[1]}`;
    const there = firstAt.get(place);
    if (there && there.call !== call) {
      faults.push(`${call} and ${there.call} both ran at one place of turn ${turnId}`);
    }
    firstAt.set(place, effect);
  }
  return faults;
};

/** Every effect is somewhere on record: in the history, of a turn that was given up, or still open. */
const recordsOfEffects = ({ effects }: Log, { head, history, record }: End): string[] =>
  effects
    .filter(({ tool, granted }) => tool !== "none" && granted?.incarnation === head.incarnation)
    .filter(({ turnId, call }) => {
      const turn = history.find((it) => it.turnId === turnId);
      if (turn)
        return !turn.messages.some(({ toolCalls }) => toolCalls.some(({ id }) => id === call));
      const isOpen = head.open?.turnId === turnId;
      const known = head.recent.get(turnKey(turnId)) ?? record(turnId);
      return !isOpen && !turnId.startsWith("~") && known?.outcome !== "abandoned";
    })
    .map(({ tool, call, turnId }) => `${tool} ran for ${call} of turn ${turnId}, which is nowhere`);

/** A client that asks in calm times is answered. */
export const isFinal = ({ outcome }: Delivery): boolean => outcome !== undefined;
