/** What every session store has to keep of the history that HEAD doesn't hold. */
import { beforeAll, describe, expect, test } from "vitest";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import type { Head, SessionKey } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import {
  claimOn,
  commitOf,
  doneTurn,
  HASH,
  head,
  hex,
  NOW_MS,
  NOW_SECONDS,
  openTurn,
} from "../support/heads.ts";

export const historyContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of history`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    const stored = async (fields: Partial<Head> = {}): Promise<Head> => {
      const it = head(fields);
      await store.create({ head: it, nowMs: NOW_MS });
      return it;
    };
    /** One turn, sealing what stood before it. */
    const append = async (key: SessionKey, turn: DoneTurn, isSealing = true): Promise<void> => {
      const claimed = await store.claim(claimOn(key, { open: openTurn({ turnId: turn.turnId }) }));
      if (!claimed.applied) throw new Error("the claim was refused");
      const sealed = isSealing ? await store.seal(claimed.head) : undefined;
      const commit = commitOf(claimed.head, { turn, ...(sealed ? { sealed } : {}) });
      expect(await store.commit(commit)).toMatchObject({ applied: true });
    };
    const now = async (key: SessionKey): Promise<Head> => {
      const it = await store.read(key);
      if (!it) throw new Error("there is no session");
      return it;
    };
    const all = async (key: SessionKey): Promise<DoneTurn[]> => {
      const it = await now(key);
      return store.turns(it, { from: 1, to: it.version });
    };

    test("gives every turn in order, whatever was sealed and when", async () => {
      const key = keyOf(await stored());
      const turns = Array.from({ length: 30 }, (_, n) => turnOf(n, (n * 997) % 4000));
      for (const [n, turn] of turns.entries()) {
        await append(key, turn, n % 3 !== 1);
        expect(await all(key)).toEqual(turns.slice(0, n + 1));
      }
      const it = await now(key);
      expect(it.tail.length).toBeLessThan(8);
      for (const [from, to] of [
        [1, 2],
        [5, 9],
        [2, 31],
        [it.tailFrom - 1, it.tailFrom + 1],
        [30, 31],
        [7, 7],
      ] as const) {
        expect(await store.turns(it, { from, to })).toEqual(turns.slice(from - 1, to - 1));
      }
    });

    test("a seal that comes late, of a runner that was overtaken, takes nothing away", async () => {
      const key = keyOf(await stored());
      const turns = Array.from({ length: 7 }, (_, n) => turnOf(n + 1, 1700));
      const seen: Head[] = [];
      for (const turn of turns.slice(0, 5)) {
        await append(key, turn, false);
        seen.push(await now(key));
      }
      for (const turn of turns.slice(5)) await append(key, turn);
      expect((await now(key)).tailFrom).toBeGreaterThan(5);
      for (const late of seen.toReversed()) await store.seal(late);
      expect(await all(key)).toEqual(turns);
    });

    test("knows a caller's turn that left HEAD, in this incarnation only, and none of its own", async () => {
      const it = await stored();
      const key = keyOf(it);
      const place = { key, incarnation: it.incarnation };
      await append(key, turnOf(1, 1700));
      await append(key, { ...turnOf(2, 1700), turnId: "~own" });
      for (let n = 3; n < 9; n++) await append(key, turnOf(n, 1700));
      expect((await now(key)).recent.has(turnKey("turn-1"))).toBe(false);
      expect(await store.findTurn(place, turnKey("turn-1"))).toMatchObject({
        version: 1,
        requestHash: HASH,
      });
      expect(await store.findTurn(place, turnKey("turn-3"))).toMatchObject({ version: 3 });
      expect(await store.findTurn({ key, incarnation: hex() }, turnKey("turn-1"))).toBeUndefined();
      expect(await store.findTurn(place, turnKey("never"))).toBeUndefined();
      expect((await now(key)).recent.has(turnKey("~own"))).toBe(false);
    });

    test("sealing in vain, twice, and by two at once changes nothing", async () => {
      const key = keyOf(await stored());
      const turns = [turnOf(1, 3000), turnOf(2, 3000), turnOf(3, 3000)];
      for (const turn of turns.slice(0, 2)) await append(key, turn, false);
      const before = await now(key);
      await Promise.all([store.seal(before), store.seal(before)]);
      expect(await now(key)).toEqual(before);
      await append(key, turns[2] ?? doneTurn(), false);
      await store.seal(await now(key));
      await append(key, turnOf(4, 10));
      expect(await all(key)).toEqual([...turns, turnOf(4, 10)]);
    });

    test.each([1, 2, 40])("stores a history of %i turns that is there at once", async (count) => {
      const turns = Array.from({ length: count }, (_, n) => turnOf(n + 1, 1500));
      const record = { attempt: hex(), version: 1, requestHash: HASH, outcome: "done" as const };
      const bare = head();
      const prepared = await store.prepare(bare, {
        turns,
        records: new Map([[turnKey("turn-1"), record]]),
      });
      expect(await store.read(keyOf(bare))).toBeUndefined();
      await store.create({ head: prepared, nowMs: NOW_MS });
      const key = keyOf(bare);
      expect(await all(key)).toEqual(turns);
      expect(await now(key)).toMatchObject({ version: count + 1, counts: { turns: count } });
      await append(key, turnOf(99, 3000));
      expect(await all(key)).toEqual([...turns, turnOf(99, 3000)]);
      const it = await now(key);
      const known =
        it.recent.get(turnKey("turn-1")) ??
        (await store.findTurn({ key, incarnation: it.incarnation }, turnKey("turn-1")));
      expect(known).toEqual(record);
    });

    test("a recreated session has nothing of its namesake's history", async () => {
      const it = await stored();
      const key = keyOf(it);
      for (let n = 1; n <= 4; n++) await append(key, turnOf(n, 3000));
      await all(key);
      await store.delete({ key, incarnation: it.incarnation, nowMs: NOW_MS });
      const over = await now(key);
      await store.create({ head: head(key), over, nowMs: NOW_MS });
      const fresh = [turnOf(11, 3000), turnOf(12, 3000), turnOf(13, 3000), turnOf(14, 3000)];
      for (const turn of fresh) await append(key, turn);
      expect(await all(key)).toEqual(fresh);
    });

    test("purges an incarnation's history, and no other", async () => {
      const it = await stored();
      const other = await stored();
      for (let n = 1; n <= 4; n++) {
        await append(keyOf(it), turnOf(n, 3000));
        await append(keyOf(other), turnOf(n, 3000));
      }
      await store.purge({ key: keyOf(it), incarnation: it.incarnation });
      expect(
        await store.findTurn({ key: keyOf(it), incarnation: it.incarnation }, turnKey("turn-1")),
      ).toBeUndefined();
      expect(await all(keyOf(other))).toHaveLength(4);
    });

    describe("setMetadata", () => {
      const change = (it: Head) => ({
        key: keyOf(it),
        incarnation: it.incarnation,
        metadata: { topic: "snow" },
        seenMetadataVersion: it.metadataVersion,
        updatedAt: "2100-12-01T12:00:05.000000+00:00",
        nowMs: NOW_MS,
      });

      test("replaces the metadata and nothing of a running turn", async () => {
        const it = await stored();
        const claimed = await store.claim(claimOn(keyOf(it)));
        if (!claimed.applied) throw new Error("the claim was refused");
        expect(await store.setMetadata(change(it))).toMatchObject({ applied: true });
        const { metadata, updatedAt } = change(it);
        expect(await now(keyOf(it))).toEqual({
          ...claimed.head,
          metadata,
          metadataVersion: 2,
          updatedAt,
        });
        expect(await store.commit(commitOf(claimed.head))).toMatchObject({ applied: true });
        expect(await now(keyOf(it))).toMatchObject({ metadata, metadataVersion: 2, version: 2 });
      });

      test.each<[string, (it: Head) => object]>([
        ["another metadata version", () => ({ seenMetadataVersion: 7 })],
        ["another incarnation", () => ({ incarnation: hex() })],
        ["the second of its expiry", (it) => ({ nowMs: it.expiresAtSeconds * 1000 })],
        ["another version asked for", () => ({ ifMatch: { version: 9 } })],
      ])("is refused at %s", async (_what, fields) => {
        const it = await stored();
        expect(await store.setMetadata({ ...change(it), ...fields(it) })).toEqual({
          applied: false,
          seen: it,
        });
      });

      test("is refused on a deleted session", async () => {
        const it = await stored({ deletedAtSeconds: NOW_SECONDS - 1 });
        expect(await store.setMetadata(change(it))).toEqual({ applied: false, seen: it });
      });
    });

    describe("list", () => {
      test("gives the owner's living sessions, newest first, page by page, stable under new ones", async () => {
        const owner = hex();
        const at = (minute: number) =>
          `2100-12-01T11:${String(minute).padStart(2, "0")}:00.000000+00:00`;
        const heads: Head[] = [];
        for (let n = 0; n < 7; n++) heads.push(await stored({ owner, createdAt: at(n) }));
        await stored({ owner: hex(), createdAt: at(3) });
        await stored({ owner, createdAt: at(30), expiresAtSeconds: NOW_SECONDS });
        const deleted = await stored({ owner, createdAt: at(31) });
        await store.delete({
          key: keyOf(deleted),
          incarnation: deleted.incarnation,
          nowMs: NOW_MS,
        });

        const seen: Head[] = [];
        let after: string | undefined;
        do {
          const page = await store.list({
            owner,
            limit: 3,
            nowMs: NOW_MS,
            ...(after === undefined ? {} : { after }),
          });
          seen.push(...page.heads);
          after = page.next;
          await stored({ owner, createdAt: at(40 + seen.length) });
        } while (after !== undefined);
        expect(seen).toEqual(heads.toReversed());
      });

      test("passes over what has expired, and gives no empty page while there is more", async () => {
        const owner = hex();
        const at = (minute: number) => `2100-12-01T11:${minute}:00.000000+00:00`;
        const living = [
          await stored({ owner, createdAt: at(10) }),
          await stored({ owner, createdAt: at(11) }),
        ];
        for (let n = 0; n < 7; n++) {
          await stored({ owner, createdAt: at(20 + n), expiresAtSeconds: NOW_SECONDS });
        }
        const first = await store.list({ owner, limit: 1, nowMs: NOW_MS });
        expect(first.heads).toEqual([living[1]]);
        const second = await store.list({
          owner,
          limit: 1,
          nowMs: NOW_MS,
          after: first.next ?? "",
        });
        expect(second.heads).toEqual([living[0]]);
      });

      test("gives an owner without sessions an empty page", async () => {
        expect(await store.list({ owner: hex(), limit: 10, nowMs: NOW_MS })).toEqual({ heads: [] });
      });
    });
  });
};

const keyOf = ({ owner, sessionId }: Head): SessionKey => ({ owner, sessionId });

/** Text of no pattern, so that its size is about what is stored. */
const turnOf = (n: number, bytes: number): DoneTurn => {
  let text = "";
  for (let seed = n + 1; text.length < bytes; ) {
    seed = (seed * 48_271) % 2_147_483_647;
    text += String.fromCharCode(33 + (seed % 90));
  }
  return doneTurn({
    turnId: `turn-${n}`,
    messages: [userMessage(`say ${n}`), assistantMessage(text)],
  });
};
