/** What the tests of sessions in a store are made of. */
import { expect } from "vitest";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import type { ClaimRecord, Head } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import { doneTurn, HASH, hex, NOW_MS, openTurn } from "../support/heads.ts";

export const record = (): ClaimRecord => ({
  attempt: hex(),
  turnId: "turn-1",
  untilMs: NOW_MS + 30_000,
});

export const RECENT = { attempt: hex(), version: 1, requestHash: HASH, outcome: "done" as const };

/** A session with a turn in its history. */
export const HISTORY: Partial<Head> = {
  version: 2,
  fence: 3,
  tail: [doneTurn({ turnId: "done-1" })],
  counts: { messages: 2, turns: 1, bytes: 80 },
  recent: new Map([[turnKey("done-1"), RECENT]]),
  metadata: { topic: "rain" },
};

export const HOSTILE_MESSAGES = [
  systemMessage(""),
  userMessage("先算 2+3 \u0000 \u{1F600} \u202E"),
  assistantMessage("", [
    {
      id: "1",
      name: "constructor",
      arguments: { b: [[], {}, "", null, 1e21, -1.5, 0.1], a: { __proto__: null } },
    },
    { id: "2", name: "cut", arguments: '{"cmd":"ls' },
    {
      id: "3",
      name: "proto",
      arguments: JSON.parse('{"__proto__":{"admin":true},"constructor":{}}'),
    },
  ]),
  toolMessage("1", ""),
  toolMessage("2", "error: no"),
  toolMessage("3", `${"[".repeat(40)}${"]".repeat(40)}`),
];

/** No field is left out. */
export const EVERYTHING: Partial<Head> = {
  ...HISTORY,
  metadataVersion: 4,
  tail: [
    doneTurn({
      turnId: "done-1",
      messages: HOSTILE_MESSAGES,
      supersedes: "done-0",
      finish: "max_steps",
    }),
  ],
  tailFrom: 1,
  metadata: { z: 1, a: [1.5, { "": "", 语: "文" }], n: null, __nested: { deep: [[[]]] } },
  superseded: [1, 5],
  claim: record(),
  open: openTurn({ input: "x\u0000y" }),
  createdAt: "2100-12-01T03:04:05.678901+00:00",
};

export const expectApplied = async (write: Promise<{ applied: boolean }>): Promise<void> => {
  expect(await write).toMatchObject({ applied: true });
};
