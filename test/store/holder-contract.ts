/** What every session store has to keep of a runner that holds the session, or has lost it. */
import { beforeAll, describe, expect, test } from "vitest";
import { encodeTurn } from "../../lib/store/codec.ts";
import type { Head } from "../../lib/store/head.ts";
import type { Held, SessionStore } from "../../lib/store/store.ts";
import { commitOf, doneTurn, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import { expectRefused, heldBy, keyOf, running } from "./open-turns.ts";
import { expectApplied, HISTORY, HOSTILE_MESSAGES, record } from "./sessions.ts";

export const holderContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a session store`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    describe("renew", () => {
      const untilMs = NOW_MS + 60_000;

      test("extends the claim", async () => {
        const it = await running(store);
        await expectApplied(store.renew({ ...heldBy(it), untilMs }));
        expect(await store.read(keyOf(it))).toEqual({ ...it, claim: { ...it.claim, untilMs } });
      });

      test("never shortens it", async () => {
        const it = await running(store);
        await expectRefused(store, store.renew({ ...heldBy(it), untilMs: NOW_MS }), it);
      });

      test("doesn't bring a released claim back", async () => {
        const it = await running(store);
        await store.release({ ...heldBy(it), keepOpen: false });
        expect(await store.renew({ ...heldBy(it), untilMs })).toMatchObject({ applied: false });
        expect((await store.read(keyOf(it)))?.claim).toBeUndefined();
      });
    });

    describe("commit", () => {
      test("appends the turn, counts the version, and ends claim and open turn", async () => {
        const it = await running(store, HISTORY);
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
        const it = await running(store);
        const turn = doneTurn({ messages: HOSTILE_MESSAGES, supersedes: "turn-0" });
        await store.commit(commitOf(it, { turn }));
        expect((await store.read(keyOf(it)))?.tail).toEqual([turn]);
      });

      test("counts no message of the turn that it supersedes", async () => {
        const it = await running(store, { ...HISTORY, superseded: [7] });
        await store.commit(commitOf(it, { supersedes: { number: 1, messages: 2 } }));
        const after = await store.read(keyOf(it));
        expect(after).toMatchObject({ superseded: [1, 7], counts: { messages: 2, turns: 2 } });
      });

      test("is refused the second time, and shows its own attempt", async () => {
        const it = await running(store);
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
        const it = await running(store);
        const nowMs = it.expiresAtSeconds * 1000;
        await expectRefused(store, store.commit(commitOf(it, { nowMs })), it);
        await expectApplied(store.commit(commitOf(it, { nowMs: nowMs - 1 })));
      });

      test("is refused on another version", async () => {
        const it = await running(store);
        await expectRefused(
          store,
          store.commit(commitOf(it, { head: { ...it, version: it.version + 1 } })),
          it,
        );
      });
    });

    describe("release", () => {
      test("ends claim and open turn, and nothing else", async () => {
        const it = await running(store, HISTORY);
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
        const it = await running(store);
        await expectRefused(store, write({ ...heldBy(it), ...held }, it), it);
      });

      test.each(writes)("%s in vain where there is no session any more", async (_verb, write) => {
        const it = head({ claim: record(), open: openTurn() });
        expect(await write(heldBy(it), it)).toEqual({ applied: false, seen: undefined });
      });

      test.each(writes)("%s in vain where it was deleted", async (_verb, write) => {
        const it = await running(store);
        await store.delete({ key: keyOf(it), incarnation: it.incarnation, nowMs: NOW_MS });
        const tombstone = await store.read(keyOf(it));
        expect(await write(heldBy(it), it)).toEqual({ applied: false, seen: tombstone });
        expect(await store.read(keyOf(it))).toEqual(tombstone);
      });
    });
  });
};
