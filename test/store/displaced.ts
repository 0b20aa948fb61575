/** What the tests of displaced turns are made of. */
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import type { Head, RecentTurn } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Displaced, SessionStore, TakeOver } from "../../lib/store/store.ts";
import { claimOn, doneTurn, HASH, NOW_MS, openTurn } from "../support/heads.ts";
import { append, claimOf, keep, keyOf, step, stored } from "./open-turns.ts";

/** A turn that has kept a step, on a session with a turn before it. */
export const started = async (store: SessionStore): Promise<Head> => {
  const first = await stored(store);
  await append(store, keyOf(first), doneTurn({ turnId: "turn-0" }));
  const it = await claimOf(store, keyOf(first));
  return keep(store, it, { steps: [step("rain")] });
};

/** Another turn, or another try, takes the place of what was seen. */
export const by = (turnId: string, seen: Head, displaced?: Displaced): TakeOver => ({
  ...claimOn(keyOf(seen), { open: openTurn({ turnId }) }),
  seen,
  ...(displaced ? { displaced } : {}),
});

export const displaceOf = (seen: Head, displaced?: Displaced) => ({
  key: keyOf(seen),
  incarnation: seen.incarnation,
  seen,
  nowMs: NOW_MS,
  ...(displaced ? { displaced } : {}),
});

const recordOf = (seen: Head, outcome: RecentTurn["outcome"]): Displaced => ({
  turnKey: turnKey("turn-1"),
  record: {
    attempt: seen.claim?.attempt ?? "",
    version: seen.version,
    requestHash: HASH,
    outcome,
  },
});

export const abandoned = (seen: Head): Displaced => recordOf(seen, "abandoned");

export const interrupted = (seen: Head, result: string): Displaced => ({
  ...recordOf(seen, "interrupted"),
  interrupted: doneTurn({
    turnId: "turn-1",
    messages: [
      userMessage("hello"),
      assistantMessage("", [{ id: "a", name: "look", arguments: {} }]),
      toolMessage("a", result),
      assistantMessage("(interrupted)"),
    ],
    finishedAt: "2100-12-01T12:00:30.000000+00:00",
    finish: "interrupted",
  }),
});

/** What becomes of the turn. */
export const KINDS: [string, (seen: Head) => Displaced | undefined][] = [
  ["leaves a record", (seen) => abandoned(seen)],
  ["leaves a turn of the history", (seen) => interrupted(seen, "rain")],
  ["leaves nothing", () => undefined],
];
