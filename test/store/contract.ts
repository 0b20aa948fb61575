/** What every session store has to keep: each condition of the protocol, one write at a time. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  assistantMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { encodeTurn } from "../../lib/store/codec.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type {
  Claim,
  ClaimRecord,
  Head,
  Held,
  SessionKey,
  SessionStore,
} from "../../lib/store/store.ts";
import {
  claimOn,
  commitOf,
  doneTurn,
  HASH,
  head,
  hex,
  NOW_MS,
  NOW_SECONDS,
  newKey,
  openTurn,
} from "../support/heads.ts";

export const sessionStoreContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a session store`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    const stored = async (fields: Partial<Head> = {}): Promise<Head> => {
      const it = head(fields);
      await expectApplied(store.create({ head: it, nowMs: NOW_MS }));
      return it;
    };
    const claimed = async (
      fields: Partial<Head> = {},
      claim: Partial<Claim> = {},
    ): Promise<Head> => {
      const key = await stored(fields);
      const result = await store.claim(claimOn(keyOf(key), claim));
      if (!result.applied) throw new Error("the claim was refused");
      return result.head;
    };
    const expectApplied = async (write: Promise<{ applied: boolean }>): Promise<void> => {
      expect(await write).toMatchObject({ applied: true });
    };
    /** A refused write brings what stands there, and leaves it so. */
    const expectRefused = async (
      write: Promise<{ applied: boolean }>,
      stands: Head,
    ): Promise<void> => {
      expect(await write).toEqual({ applied: false, seen: stands });
      expect(await store.read(keyOf(stands))).toEqual(stands);
    };

    describe("create", () => {
      test("stores a session as it is", async () => {
        const it = await stored(EVERYTHING);
        expect(await store.read(keyOf(it))).toEqual(it);
      });

      test("reads nothing where nothing was created", async () => {
        expect(await store.read(newKey())).toBeUndefined();
      });

      test("refuses a session that lives", async () => {
        const it = await stored();
        await expectRefused(store.create({ head: head(keyOf(it)), nowMs: NOW_MS }), it);
      });

      test("shows its own incarnation when it is sent twice", async () => {
        const it = await stored();
        await expectRefused(store.create({ head: it, nowMs: NOW_MS }), it);
      });

      test("lets one of ten creators win", async () => {
        const key = newKey();
        const heads = Array.from({ length: 10 }, () => head(key));
        const results = await Promise.all(
          heads.map((it) => store.create({ head: it, nowMs: NOW_MS })),
        );
        expect(results.filter(({ applied }) => applied)).toHaveLength(1);
        expect(await store.read(key)).toEqual(heads[results.findIndex(({ applied }) => applied)]);
      });

      test("writes over an expired session as it was seen, and leaves nothing of it", async () => {
        const dead = await stored({ ...EVERYTHING, expiresAtSeconds: NOW_SECONDS });
        const it = head(keyOf(dead));
        await expectApplied(store.create({ head: it, over: dead, nowMs: NOW_MS }));
        expect(await store.read(keyOf(it))).toEqual(it);
      });

      test("writes over a deleted session as it was seen", async () => {
        const it = await stored();
        await store.delete({ key: keyOf(it), incarnation: it.incarnation, nowMs: NOW_MS });
        const over = await store.read(keyOf(it));
        if (!over) throw new Error("there is no tombstone");
        const next = head(keyOf(it));
        await expectApplied(store.create({ head: next, over, nowMs: NOW_MS }));
        expect(await store.read(keyOf(it))).toEqual(next);
      });

      test("refuses to write over a session that lives, though it was seen", async () => {
        const it = await stored();
        await expectRefused(store.create({ head: head(keyOf(it)), over: it, nowMs: NOW_MS }), it);
      });

      test("refuses to write over another dead session than the one seen", async () => {
        const it = await stored({ expiresAtSeconds: NOW_SECONDS });
        const over = { ...it, incarnation: hex() };
        await expectRefused(store.create({ head: head(keyOf(it)), over, nowMs: NOW_MS }), it);
      });
    });

    describe("keys", () => {
      test.each(COLLIDING_KEYS)("S13: %j and %j are two sessions", async (a, b) => {
        const unique = hex();
        const one = await stored({ owner: a[0] + unique, sessionId: a[1] });
        const other = await stored({ owner: b[0] + unique, sessionId: b[1] });
        expect(await store.read(keyOf(one))).toEqual(one);
        expect(await store.read(keyOf(other))).toEqual(other);
      });

      test("X01: an owner doesn't see another's session", async () => {
        const it = await stored();
        expect(await store.read({ owner: "bob", sessionId: it.sessionId })).toBeUndefined();
        const claim = claimOn({ owner: "bob", sessionId: it.sessionId });
        expect(await store.claim(claim)).toEqual({ applied: false, seen: undefined });
      });
    });

    describe("claim", () => {
      test("grants a session at rest, and brings it as it then stands", async () => {
        const it = await stored(HISTORY);
        const claim = claimOn(keyOf(it));
        const granted = { ...it, fence: it.fence + 1, claim: claim.claim, open: claim.open };
        expect(await store.claim(claim)).toEqual({ applied: true, head: granted });
        expect(await store.read(keyOf(it))).toEqual(granted);
      });

      test("refuses where there is no session", async () => {
        expect(await store.claim(claimOn(newKey()))).toEqual({ applied: false, seen: undefined });
      });

      test("refuses an expired session at the very second", async () => {
        const it = await stored({ expiresAtSeconds: NOW_SECONDS });
        await expectRefused(store.claim(claimOn(keyOf(it))), it);
        expect(await store.claim(claimOn(keyOf(it), { nowMs: NOW_MS - 1 }))).toMatchObject({
          applied: true,
        });
      });

      test("refuses a deleted session", async () => {
        const it = await stored({ deletedAtSeconds: NOW_SECONDS - 1 });
        await expectRefused(store.claim(claimOn(keyOf(it))), it);
      });

      test("refuses a turn that is done", async () => {
        const it = await stored(HISTORY);
        await expectRefused(
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "done-1" }) })),
          it,
        );
      });

      test("refuses a session that is claimed, by the same turn too", async () => {
        const it = await claimed();
        await expectRefused(
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "turn-2" }) })),
          it,
        );
        await expectRefused(store.claim(claimOn(keyOf(it))), it);
      });

      test("refuses a session with another turn left open, even where nobody claims it", async () => {
        const it = await stored({ open: openTurn() });
        await expectRefused(
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "turn-2" }) })),
          it,
        );
        await expectRefused(
          store.claim(claimOn(keyOf(it), { open: openTurn({ requestHash: hex() }) })),
          it,
        );
      });

      test("resumes the same turn left open, as it was stored", async () => {
        const left = openTurn({ startedAt: "2100-12-01T11:30:00.000000+00:00" });
        const it = await claimed({ open: left });
        expect(it.open).toEqual(left);
      });

      test.each([
        ["another version", { version: 2 }],
        ["another metadata version", { version: 1, metadataVersion: 2 }],
      ])("refuses %s than the one asked for", async (_what, ifMatch) => {
        const it = await stored();
        await expectRefused(store.claim(claimOn(keyOf(it), { ifMatch })), it);
      });

      test.each([{ version: 1 }, { version: 1, metadataVersion: 1 }])(
        "grants at %j",
        async (ifMatch) => {
          const it = await stored();
          expect(await store.claim(claimOn(keyOf(it), { ifMatch }))).toMatchObject({
            applied: true,
          });
        },
      );

      test("lets one of ten claims win", async () => {
        const it = await stored();
        const claims = Array.from({ length: 10 }, () => claimOn(keyOf(it)));
        const results = await Promise.all(claims.map((claim) => store.claim(claim)));
        expect(results.filter(({ applied }) => applied)).toHaveLength(1);
        const winner = claims[results.findIndex(({ applied }) => applied)];
        expect(await store.read(keyOf(it))).toMatchObject({ fence: 1, claim: winner?.claim });
      });
    });

    describe("takeOver", () => {
      const other = openTurn({ turnId: "turn-2", input: "later" });

      test("replaces a claim and its turn as they were seen", async () => {
        const seen = await claimed();
        const claim = claimOn(keyOf(seen), { open: other });
        const granted = { ...seen, fence: seen.fence + 1, claim: claim.claim, open: other };
        expect(await store.takeOver({ ...claim, seen })).toEqual({ applied: true, head: granted });
        expect(await store.read(keyOf(seen))).toEqual(granted);
      });

      test("replaces a turn left open without a claim", async () => {
        const seen = await stored({ open: openTurn() });
        const result = await store.takeOver({ ...claimOn(keyOf(seen), { open: other }), seen });
        expect(result).toMatchObject({ applied: true, head: { open: other } });
      });

      test("resumes the same turn as it was stored", async () => {
        const seen = await claimed({
          open: openTurn({ startedAt: "2100-12-01T11:30:00.000000+00:00" }),
        });
        const result = await store.takeOver({ ...claimOn(keyOf(seen)), seen });
        expect(result).toMatchObject({ applied: true, head: { open: seen.open } });
      });

      const refusals: [string, Partial<Head>, (it: Head) => Head][] = [
        ["another fence", {}, (it) => ({ ...it, fence: it.fence - 1 })],
        ["another attempt", { claim: record() }, (it) => ({ ...it, claim: record() })],
        ["no claim", { claim: record() }, ({ claim: _claim, ...it }) => it],
        ["a claim where there is none", { open: openTurn() }, (it) => ({ ...it, claim: record() })],
        ["another open turn", { open: openTurn() }, (it) => ({ ...it, open: other })],
        ["no open turn", { claim: record(), open: openTurn() }, ({ open: _open, ...it }) => it],
        [
          "an open turn where there is none",
          { claim: record() },
          (it) => ({ ...it, open: openTurn() }),
        ],
        ["another incarnation", { claim: record() }, (it) => ({ ...it, incarnation: hex() })],
      ];
      test.each(refusals)("refuses where %s was seen", async (_what, fields, differently) => {
        const it = await stored(fields);
        const seen = differently(it);
        await expectRefused(store.takeOver({ ...claimOn(keyOf(it), { open: other }), seen }), it);
      });

      test.each<[string, Partial<Head>]>([
        ["expired", { expiresAtSeconds: NOW_SECONDS }],
        ["deleted", { deletedAtSeconds: NOW_SECONDS - 1 }],
        ["done with this turn", { recent: new Map([[turnKey("turn-2"), RECENT]]) }],
      ])("refuses a session that is %s", async (_what, fields) => {
        const it = await stored({ open: openTurn(), ...fields });
        await expectRefused(
          store.takeOver({ ...claimOn(keyOf(it), { open: other }), seen: it }),
          it,
        );
      });

      test("refuses another version than the one asked for", async () => {
        const it = await stored({ open: openTurn() });
        const claim = claimOn(keyOf(it), { open: other, ifMatch: { version: 2 } });
        await expectRefused(store.takeOver({ ...claim, seen: it }), it);
      });

      test("lets one of ten win", async () => {
        const seen = await claimed();
        const takeOvers = Array.from({ length: 10 }, () => ({ ...claimOn(keyOf(seen)), seen }));
        const results = await Promise.all(takeOvers.map((takeOver) => store.takeOver(takeOver)));
        expect(results.filter(({ applied }) => applied)).toHaveLength(1);
      });
    });

    describe("renew", () => {
      const untilMs = NOW_MS + 60_000;

      test("extends the claim", async () => {
        const it = await claimed();
        await expectApplied(store.renew({ ...heldBy(it), untilMs }));
        expect(await store.read(keyOf(it))).toEqual({ ...it, claim: { ...it.claim, untilMs } });
      });

      test("never shortens it", async () => {
        const it = await claimed();
        await expectRefused(store.renew({ ...heldBy(it), untilMs: NOW_MS }), it);
      });

      test("doesn't bring a released claim back", async () => {
        const it = await claimed();
        await store.release({ ...heldBy(it), keepOpen: false });
        expect(await store.renew({ ...heldBy(it), untilMs })).toMatchObject({ applied: false });
        expect((await store.read(keyOf(it)))?.claim).toBeUndefined();
      });
    });

    describe("commit", () => {
      test("appends the turn, counts the version, and ends claim and open turn", async () => {
        const it = await claimed(HISTORY);
        const commit = commitOf(it);
        await expectApplied(store.commit(commit));
        const { claim: _claim, open: _open, ...rest } = it;
        expect(await store.read(keyOf(it))).toEqual({
          ...rest,
          version: it.version + 1,
          tail: [...it.tail, commit.turn],
          counts: {
            messages: it.counts.messages + 2,
            turns: it.counts.turns + 1,
            bytes: it.counts.bytes + Buffer.byteLength(encodeTurn(commit.turn)),
          },
          updatedAt: commit.turn.finishedAt,
          recent: new Map(it.recent).set(commit.turnKey, {
            attempt: commit.attempt,
            version: it.version,
            requestHash: commit.requestHash,
            outcome: "done",
          }),
        });
      });

      test("stores a turn as it is", async () => {
        const it = await claimed();
        const turn = doneTurn({ messages: HOSTILE_MESSAGES, supersedes: "turn-0" });
        await store.commit(commitOf(it, { turn }));
        expect((await store.read(keyOf(it)))?.tail).toEqual([turn]);
      });

      test("counts no message of the turn that it supersedes", async () => {
        const it = await claimed({ ...HISTORY, superseded: [7] });
        await store.commit(commitOf(it, { supersedes: { number: 1, messages: 2 } }));
        const after = await store.read(keyOf(it));
        expect(after).toMatchObject({ superseded: [1, 7], counts: { messages: 2, turns: 2 } });
      });

      test("is refused the second time, and shows its own attempt", async () => {
        const it = await claimed();
        const commit = commitOf(it);
        await store.commit(commit);
        const { attempt, requestHash } = commit;
        expect(await store.commit(commit)).toMatchObject({
          applied: false,
          seen: {
            version: 2,
            recent: new Map([[commit.turnKey, { attempt, version: 1, requestHash }]]),
          },
        });
        expect((await store.read(keyOf(it)))?.tail).toHaveLength(1);
      });

      test("is refused at the second of the session's expiry", async () => {
        const it = await claimed();
        const nowMs = it.expiresAtSeconds * 1000;
        await expectRefused(store.commit(commitOf(it, { nowMs })), it);
        await expectApplied(store.commit(commitOf(it, { nowMs: nowMs - 1 })));
      });

      test("is refused on another version", async () => {
        const it = await claimed();
        await expectRefused(
          store.commit(commitOf(it, { head: { ...it, version: it.version + 1 } })),
          it,
        );
      });
    });

    describe("release", () => {
      test("ends claim and open turn, and nothing else", async () => {
        const it = await claimed(HISTORY);
        await expectApplied(store.release({ ...heldBy(it), keepOpen: false }));
        const { claim: _claim, open: _open, ...rest } = it;
        expect(await store.read(keyOf(it))).toEqual(rest);
      });
    });

    describe("a runner that lost the session", () => {
      const writes: [string, (held: Held, it: Head) => Promise<{ applied: boolean }>][] = [
        ["renews", (held) => store.renew({ ...held, untilMs: NOW_MS + 60_000 })],
        ["commits", (held, it) => store.commit({ ...commitOf(it), ...held })],
        ["releases", (held) => store.release({ ...held, keepOpen: false })],
      ];
      const losses: [string, Partial<Held>][] = [
        ["with another fence", { fence: 7 }],
        ["with another attempt", { attempt: hex() }],
        ["in another incarnation", { incarnation: hex() }],
      ];
      test.each(
        writes.flatMap(([verb, write]) =>
          losses.map(([how, held]) => ({ verb, how, write, held })),
        ),
      )("$verb in vain $how", async ({ write, held }) => {
        const it = await claimed();
        await expectRefused(write({ ...heldBy(it), ...held }, it), it);
      });

      test.each(writes)("%s in vain where there is no session any more", async (_verb, write) => {
        const it = head({ claim: record(), open: openTurn() });
        expect(await write(heldBy(it), it)).toEqual({ applied: false, seen: undefined });
      });

      test.each(writes)("%s in vain where it was deleted", async (_verb, write) => {
        const it = await claimed();
        await store.delete({ key: keyOf(it), incarnation: it.incarnation, nowMs: NOW_MS });
        const tombstone = await store.read(keyOf(it));
        expect(await write(heldBy(it), it)).toEqual({ applied: false, seen: tombstone });
        expect(await store.read(keyOf(it))).toEqual(tombstone);
      });
    });

    describe("delete", () => {
      test("leaves a tombstone for a day, without history, metadata, claim or open turn", async () => {
        const it = await stored(EVERYTHING);
        const { owner, sessionId, incarnation } = it;
        await expectApplied(store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS }));
        const tombstone = await store.read({ owner, sessionId });
        expect(tombstone).toMatchObject({
          incarnation,
          deletedAtSeconds: NOW_SECONDS,
          expiresAtSeconds: NOW_SECONDS + 86_400,
          metadata: {},
          tail: [],
          recent: new Map(),
        });
        expect(tombstone).not.toHaveProperty("claim");
        expect(tombstone).not.toHaveProperty("open");
      });

      test("is refused the second time, and leaves the tombstone as it is", async () => {
        const it = await stored();
        const { incarnation } = it;
        await store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS });
        const tombstone = await store.read(keyOf(it));
        const again = await store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS + 5000 });
        expect(again).toEqual({ applied: false, seen: tombstone });
      });

      test("spares a namesake that was created since", async () => {
        const it = await stored();
        await expectRefused(
          store.delete({ key: keyOf(it), incarnation: hex(), nowMs: NOW_MS }),
          it,
        );
      });

      test("spares a session whose version isn't the one asked for", async () => {
        const it = await stored();
        const { incarnation } = it;
        const ifMatch = { version: 1, metadataVersion: 2 };
        await expectRefused(
          store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS, ifMatch }),
          it,
        );
      });
    });
  });
};

const keyOf = ({ owner, sessionId }: Head): SessionKey => ({ owner, sessionId });

const heldBy = (it: Head): Held => ({
  key: keyOf(it),
  incarnation: it.incarnation,
  fence: it.fence,
  attempt: it.claim?.attempt ?? "",
});

const record = (): ClaimRecord => ({ attempt: hex(), turnId: "turn-1", untilMs: NOW_MS + 30_000 });

const RECENT = { attempt: hex(), version: 1, requestHash: HASH, outcome: "done" as const };

const HISTORY: Partial<Head> = {
  version: 2,
  fence: 3,
  tail: [doneTurn({ turnId: "done-1" })],
  counts: { messages: 2, turns: 1, bytes: 80 },
  recent: new Map([[turnKey("done-1"), RECENT]]),
  metadata: { topic: "rain" },
};

const HOSTILE_MESSAGES = [
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
const EVERYTHING: Partial<Head> = {
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

const COLLIDING_KEYS: [[string, string], [string, string]][] = [
  [
    ["a", "b"],
    ["a#", "b"],
  ],
  [
    ["a%23", "b"],
    ["a#", "b"],
  ],
  [
    ["é", "b"],
    ["e\u0301", "b"],
  ],
  [
    ["..", "b"],
    [".", "b"],
  ],
  [
    ["a\u0000", "b"],
    ["a", "b"],
  ],
  [
    ["A", "b"],
    ["a", "b"],
  ],
  [
    ["a", "B"],
    ["a", "b"],
  ],
];
