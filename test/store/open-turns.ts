/** What the tests of open turns are made of. */
import { expect } from "vitest";
import { assistantMessage, type ToolCall } from "../../lib/session/message.ts";
import type { DoneTurn, TurnStep } from "../../lib/session/turn.ts";
import type { Head, SessionKey } from "../../lib/store/head.ts";
import type { Checkpoint, Claim, Held, Kept, SessionStore } from "../../lib/store/store.ts";
import { claimOn, commitOf, head, NOW_MS, openTurn } from "../support/heads.ts";

export const keyOf = ({ owner, sessionId }: Head): SessionKey => ({ owner, sessionId });

export const heldBy = (it: Head): Held => ({
  key: keyOf(it),
  incarnation: it.incarnation,
  fence: it.fence,
  attempt: it.claim?.attempt ?? "",
});

/** A refused write brings what stands there, and leaves it so. */
export const expectRefused = async (
  store: SessionStore,
  write: Promise<{ applied: boolean }>,
  stands: Head,
): Promise<void> => {
  expect(await write).toEqual({ applied: false, seen: stands });
  expect(await store.read(keyOf(stands))).toEqual(stands);
};

export const headOf = async (store: SessionStore, key: SessionKey): Promise<Head> => {
  const it = await store.read(key);
  if (!it) throw new Error("there is no session");
  return it;
};

export const stored = async (store: SessionStore, fields: Partial<Head> = {}): Promise<Head> => {
  const it = head(fields);
  expect(await store.create({ head: it, nowMs: NOW_MS })).toMatchObject({ applied: true });
  return it;
};

export const claimOf = async (
  store: SessionStore,
  key: SessionKey,
  fields: Partial<Claim> = {},
): Promise<Head> => {
  const result = await store.claim(claimOn(key, fields));
  if (!result.applied) throw new Error("the claim was refused");
  return result.head;
};

/** A session on which a turn runs. */
export const running = async (
  store: SessionStore,
  fields: Partial<Head> = {},
  claim: Partial<Claim> = {},
): Promise<Head> => claimOf(store, keyOf(await stored(store, fields)), claim);

/** A step that asks for one tool for each result. */
export const step = (...results: (string | null)[]): TurnStep =>
  stepWith(
    "I look",
    results.map((_, n) => ({ id: `call-${n}`, name: "look", arguments: { n } })),
    results,
  );

export const stepWith = (
  text: string,
  calls: readonly ToolCall[],
  results: TurnStep["results"] = calls.map(() => null),
): TurnStep => ({
  message: assistantMessage(text, calls),
  usage: { inputTokens: 7, outputTokens: 11 },
  results,
});

export const checkpointOf = (
  it: Head,
  kept: Kept,
  fields: Partial<Checkpoint> = {},
): Checkpoint => ({
  ...heldBy(it),
  head: it,
  revision: it.open?.revision ?? 0,
  kept,
  untilMs: NOW_MS + 60_000,
  ...fields,
});

/** Gives the session as it then stands. */
export const keep = async (store: SessionStore, it: Head, kept: Kept): Promise<Head> => {
  expect(await store.checkpoint(checkpointOf(it, kept))).toMatchObject({ applied: true });
  return headOf(store, keyOf(it));
};

/** The open turn of this session as `openTurn` gives it. */
export const whole = (it: Head, steps: readonly TurnStep[], input = it.open?.input) => {
  if (!it.open) throw new Error("there is no open turn");
  const { revision: _revision, ...turn } = it.open;
  return { ...turn, input, steps };
};

/** One more turn in the history, sealing what stood before it. */
export const append = async (
  store: SessionStore,
  key: SessionKey,
  turn: DoneTurn,
): Promise<void> => {
  const it = await claimOf(store, key, { open: openTurn({ turnId: turn.turnId }) });
  const sealed = await store.seal(it);
  expect(await store.commit(commitOf(it, { turn, sealed }))).toMatchObject({ applied: true });
};

/** Text of no pattern, so that its size is about what is stored. */
export const noise = (bytes: number, seed = 1): string => {
  let text = "";
  for (let next = seed + 1; text.length < bytes; ) {
    next = (next * 48_271) % 2_147_483_647;
    text += String.fromCharCode(35 + (next % 57));
  }
  return text;
};

/** The same in letters of three and four bytes. */
export const wideNoise = (bytes: number): string =>
  Array.from(noise(bytes / 3.5), (letter, n) =>
    String.fromCodePoint((n % 2 === 0 ? 0x4e00 : 0x20000) + letter.charCodeAt(0) * 200 + (n % 199)),
  ).join("");
