/** What every session store has to keep of who may work on a session: one claim at a time. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Head } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { claimOn, hex, NOW_MS, NOW_SECONDS, newKey, openTurn } from "../support/heads.ts";
import { expectRefused, keyOf, running, stored } from "./open-turns.ts";
import { HISTORY, RECENT, record } from "./sessions.ts";

export const claimContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a session store`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    describe("claim", () => {
      test("grants a session at rest, and brings it as it then stands", async () => {
        const it = await stored(store, HISTORY);
        const claim = claimOn(keyOf(it));
        const granted = { ...it, fence: it.fence + 1, claim: claim.claim, open: claim.open };
        expect(await store.claim(claim)).toEqual({ applied: true, head: granted });
        expect(await store.read(keyOf(it))).toEqual(granted);
      });

      test("refuses where there is no session", async () => {
        expect(await store.claim(claimOn(newKey()))).toEqual({ applied: false, seen: undefined });
      });

      test("refuses an expired session at the very second", async () => {
        const it = await stored(store, { expiresAtSeconds: NOW_SECONDS });
        await expectRefused(store, store.claim(claimOn(keyOf(it))), it);
        expect(await store.claim(claimOn(keyOf(it), { nowMs: NOW_MS - 1 }))).toMatchObject({
          applied: true,
        });
      });

      test("refuses a deleted session", async () => {
        const it = await stored(store, { deletedAtSeconds: NOW_SECONDS - 1 });
        await expectRefused(store, store.claim(claimOn(keyOf(it))), it);
      });

      test("refuses a turn that is done", async () => {
        const it = await stored(store, HISTORY);
        await expectRefused(
          store,
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "done-1" }) })),
          it,
        );
      });

      test("refuses a session that is claimed, by the same turn too", async () => {
        const it = await running(store);
        await expectRefused(
          store,
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "turn-2" }) })),
          it,
        );
        await expectRefused(store, store.claim(claimOn(keyOf(it))), it);
      });

      test("refuses a session with another turn left open, even where nobody claims it", async () => {
        const it = await stored(store, { open: openTurn() });
        await expectRefused(
          store,
          store.claim(claimOn(keyOf(it), { open: openTurn({ turnId: "turn-2" }) })),
          it,
        );
        await expectRefused(
          store,
          store.claim(claimOn(keyOf(it), { open: openTurn({ requestHash: hex() }) })),
          it,
        );
      });

      test("resumes the same turn left open, as it was stored", async () => {
        const left = openTurn({ startedAt: "2100-12-01T11:30:00.000000+00:00" });
        const it = await running(store, { open: left });
        expect(it.open).toEqual(left);
      });

      test.each([
        ["another version", { version: 2 }],
        ["another metadata version", { version: 1, metadataVersion: 2 }],
      ])("refuses %s than the one asked for", async (_what, ifMatch) => {
        const it = await stored(store);
        await expectRefused(store, store.claim(claimOn(keyOf(it), { ifMatch })), it);
      });

      test.each([{ version: 1 }, { version: 1, metadataVersion: 1 }])(
        "grants at %j",
        async (ifMatch) => {
          const it = await stored(store);
          expect(await store.claim(claimOn(keyOf(it), { ifMatch }))).toMatchObject({
            applied: true,
          });
        },
      );

      test("refuses another session than the one that is meant", async () => {
        const it = await stored(store);
        const other = store.claim(claimOn(keyOf(it), { incarnation: hex() }));
        await expectRefused(store, other, it);
        const { incarnation } = it;
        const granted = await store.claim(claimOn(keyOf(it), { incarnation }));
        expect(granted).toMatchObject({ applied: true, head: { incarnation } });
      });

      test("lets one of ten claims win", async () => {
        const it = await stored(store);
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
        const seen = await running(store);
        const claim = claimOn(keyOf(seen), { open: other });
        const granted = { ...seen, fence: seen.fence + 1, claim: claim.claim, open: other };
        expect(await store.takeOver({ ...claim, seen })).toEqual({ applied: true, head: granted });
        expect(await store.read(keyOf(seen))).toEqual(granted);
      });

      test("replaces a turn left open without a claim", async () => {
        const seen = await stored(store, { open: openTurn() });
        const result = await store.takeOver({ ...claimOn(keyOf(seen), { open: other }), seen });
        expect(result).toMatchObject({ applied: true, head: { open: other } });
      });

      test("resumes the same turn as it was stored", async () => {
        const seen = await running(store, {
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
        const it = await stored(store, fields);
        const seen = differently(it);
        await expectRefused(
          store,
          store.takeOver({ ...claimOn(keyOf(it), { open: other }), seen }),
          it,
        );
      });

      test.each<[string, Partial<Head>]>([
        ["expired", { expiresAtSeconds: NOW_SECONDS }],
        ["deleted", { deletedAtSeconds: NOW_SECONDS - 1 }],
        ["done with this turn", { recent: new Map([[turnKey("turn-2"), RECENT]]) }],
      ])("refuses a session that is %s", async (_what, fields) => {
        const it = await stored(store, { open: openTurn(), ...fields });
        await expectRefused(
          store,
          store.takeOver({ ...claimOn(keyOf(it), { open: other }), seen: it }),
          it,
        );
      });

      test("refuses another version than the one asked for", async () => {
        const it = await stored(store, { open: openTurn() });
        const claim = claimOn(keyOf(it), { open: other, ifMatch: { version: 2 } });
        await expectRefused(store, store.takeOver({ ...claim, seen: it }), it);
      });

      test("lets one of ten win", async () => {
        const seen = await running(store);
        const takeOvers = Array.from({ length: 10 }, () => ({ ...claimOn(keyOf(seen)), seen }));
        const results = await Promise.all(takeOvers.map((takeOver) => store.takeOver(takeOver)));
        expect(results.filter(({ applied }) => applied)).toHaveLength(1);
      });
    });
  });
};
