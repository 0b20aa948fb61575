/** What every session store has to keep of a session: its creation, its name, and its deletion. */
import { beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { claimOn, head, hex, NOW_MS, NOW_SECONDS, newKey } from "../support/heads.ts";
import { expectRefused, keyOf, stored } from "./open-turns.ts";
import { EVERYTHING, expectApplied } from "./sessions.ts";

export const sessionContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a session store`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    describe("create", () => {
      test("stores a session as it is", async () => {
        const it = await stored(store, EVERYTHING);
        expect(await store.read(keyOf(it))).toEqual(it);
      });

      test("reads nothing where nothing was created", async () => {
        expect(await store.read(newKey())).toBeUndefined();
      });

      test("refuses a session that lives", async () => {
        const it = await stored(store);
        await expectRefused(store, store.create({ head: head(keyOf(it)), nowMs: NOW_MS }), it);
      });

      test("shows its own incarnation when it is sent twice", async () => {
        const it = await stored(store);
        await expectRefused(store, store.create({ head: it, nowMs: NOW_MS }), it);
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
        const dead = await stored(store, { ...EVERYTHING, expiresAtSeconds: NOW_SECONDS });
        const it = head(keyOf(dead));
        await expectApplied(store.create({ head: it, over: dead, nowMs: NOW_MS }));
        expect(await store.read(keyOf(it))).toEqual(it);
      });

      test("writes over a deleted session as it was seen", async () => {
        const it = await stored(store);
        await store.delete({ key: keyOf(it), incarnation: it.incarnation, nowMs: NOW_MS });
        const over = await store.read(keyOf(it));
        if (!over) throw new Error("there is no tombstone");
        const next = head(keyOf(it));
        await expectApplied(store.create({ head: next, over, nowMs: NOW_MS }));
        expect(await store.read(keyOf(it))).toEqual(next);
      });

      test("refuses to write over a session that lives, though it was seen", async () => {
        const it = await stored(store);
        await expectRefused(
          store,
          store.create({ head: head(keyOf(it)), over: it, nowMs: NOW_MS }),
          it,
        );
      });

      test("refuses to write over another dead session than the one seen", async () => {
        const it = await stored(store, { expiresAtSeconds: NOW_SECONDS });
        const over = { ...it, incarnation: hex() };
        await expectRefused(
          store,
          store.create({ head: head(keyOf(it)), over, nowMs: NOW_MS }),
          it,
        );
      });
    });

    describe("keys", () => {
      test.each(COLLIDING_KEYS)("S13: %j and %j are two sessions", async (a, b) => {
        const unique = hex();
        const one = await stored(store, { owner: a[0] + unique, sessionId: a[1] });
        const other = await stored(store, { owner: b[0] + unique, sessionId: b[1] });
        expect(await store.read(keyOf(one))).toEqual(one);
        expect(await store.read(keyOf(other))).toEqual(other);
      });

      test("X01: an owner doesn't see another's session", async () => {
        const it = await stored(store);
        expect(await store.read({ owner: "bob", sessionId: it.sessionId })).toBeUndefined();
        const claim = claimOn({ owner: "bob", sessionId: it.sessionId });
        expect(await store.claim(claim)).toEqual({ applied: false, seen: undefined });
      });
    });

    describe("delete", () => {
      test("leaves a tombstone for a day, without history, metadata, claim or open turn", async () => {
        const it = await stored(store, EVERYTHING);
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
        const it = await stored(store);
        const { incarnation } = it;
        await store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS });
        const tombstone = await store.read(keyOf(it));
        const again = await store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS + 5000 });
        expect(again).toEqual({ applied: false, seen: tombstone });
      });

      test("spares a namesake that was created since", async () => {
        const it = await stored(store);
        await expectRefused(
          store,
          store.delete({ key: keyOf(it), incarnation: hex(), nowMs: NOW_MS }),
          it,
        );
      });

      test("spares a session whose version isn't the one asked for", async () => {
        const it = await stored(store);
        const { incarnation } = it;
        const ifMatch = { version: 1, metadataVersion: 2 };
        await expectRefused(
          store,
          store.delete({ key: keyOf(it), incarnation, nowMs: NOW_MS, ifMatch }),
          it,
        );
      });
    });
  });
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
