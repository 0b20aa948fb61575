/** What every session store has to keep of a turn that loses its place. */
import { beforeAll, describe, expect, test } from "vitest";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import { encodeTurn } from "../../lib/store/codec.ts";
import type { Head, SessionKey } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore, TakeOver } from "../../lib/store/store.ts";
import { claimOn, commitOf, doneTurn, HASH, openTurn } from "../support/heads.ts";
import { abandoned, by, displaceOf, interrupted, KINDS, started } from "./displaced.ts";
import {
  append,
  claimOf,
  expectRefused,
  headOf,
  heldBy,
  keep,
  keyOf,
  noise,
  running,
  step,
  stored,
} from "./open-turns.ts";

export const displacedContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of displaced turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    const took = async (write: TakeOver): Promise<Head> => {
      const result = await store.takeOver(write);
      if (!result.applied) throw new Error("the take-over was refused");
      expect(await headOf(store, write.key)).toEqual(result.head);
      return result.head;
    };
    const history = async (key: SessionKey): Promise<DoneTurn[]> => {
      const it = await headOf(store, key);
      return store.turns(it, { from: 1, to: it.version });
    };
    /** Until HEAD has forgotten all that was there. */
    const pushOut = async (key: SessionKey): Promise<void> => {
      for (let n = 0; n < 8; n++) {
        const messages = [userMessage("more"), assistantMessage(noise(1700, n))];
        await append(store, key, doneTurn({ turnId: `later-${n}`, messages }));
      }
    };

    describe("takeOver of an abandoned turn", () => {
      test("replaces it, and records how it ended", async () => {
        const seen = await started(store);
        const write = by("turn-2", seen, abandoned(seen));
        const after = await took(write);
        expect(after).toEqual({
          ...seen,
          fence: seen.fence + 1,
          claim: write.claim,
          open: openTurn({ turnId: "turn-2" }),
          recent: new Map(seen.recent).set(turnKey("turn-1"), {
            attempt: seen.claim?.attempt ?? "",
            version: 2,
            requestHash: HASH,
            outcome: "abandoned",
          }),
        });
        expect(await store.openTurn(after)).toMatchObject({ turnId: "turn-2", steps: [] });
        expect(await history(write.key)).toMatchObject([{ turnId: "turn-0" }]);
      });

      test("refuses a later try of it, which sees the record", async () => {
        const seen = await started(store);
        const after = await took(by("turn-2", seen, abandoned(seen)));
        await expectRefused(store, store.takeOver(by("turn-1", after)), after);
        await store.release({ ...heldBy(after), keepOpen: false });
        const free = await headOf(store, keyOf(seen));
        const late = store.claim(claimOn(keyOf(seen)));
        await expectRefused(store, late, free);
        expect(free.recent.get(turnKey("turn-1"))?.outcome).toBe("abandoned");
      });

      test("is remembered when HEAD has forgotten it", async () => {
        const seen = await started(store);
        const { record } = abandoned(seen);
        await store.commit(commitOf(await took(by("turn-2", seen, abandoned(seen)))));
        await pushOut(keyOf(seen));
        const now = await headOf(store, keyOf(seen));
        expect(now.recent.has(turnKey("turn-1"))).toBe(false);
        const place = { key: keyOf(seen), incarnation: seen.incarnation };
        expect(await store.findTurn(place, turnKey("turn-1"))).toEqual(record);
        expect(await history(keyOf(seen))).toHaveLength(10);
      });

      test("of a turn that nobody runs does the same", async () => {
        const it = await started(store);
        await store.release({ ...heldBy(it), keepOpen: true });
        const seen = await headOf(store, keyOf(it));
        const displaced = {
          ...abandoned(seen),
          record: { ...abandoned(seen).record, attempt: "" },
        };
        const after = await took(by("turn-2", seen, displaced));
        expect(after.recent.get(turnKey("turn-1"))).toEqual(displaced.record);
      });

      test("without a record leaves nothing of it, and it may be run again", async () => {
        const seen = await started(store);
        const after = await took(by("turn-2", seen));
        expect(after.recent).toEqual(seen.recent);
        const again = await took(by("turn-1", after));
        expect(await store.openTurn(again)).toMatchObject({ turnId: "turn-1", steps: [] });
      });

      test("lets one of ten win, with its record", async () => {
        const seen = await started(store);
        const writes = Array.from({ length: 10 }, (_, n) =>
          by(`turn-${n + 2}`, seen, abandoned(seen)),
        );
        const results = await Promise.all(writes.map((write) => store.takeOver(write)));
        expect(results.filter(({ applied }) => applied)).toHaveLength(1);
        const winner = writes[results.findIndex(({ applied }) => applied)];
        const now = await headOf(store, keyOf(seen));
        expect(now).toMatchObject({ fence: seen.fence + 1, claim: winner?.claim });
        expect(now.recent.get(turnKey("turn-1"))).toEqual(abandoned(seen).record);
      });
    });

    describe("takeOver of an interrupted turn", () => {
      const sizes: [string, string][] = [
        ["small", "rain"],
        ["of 3 KB", noise(3000)],
        ["of 5 MB", noise(5_000_000)],
      ];
      test.each(sizes)("puts it into the history, %s", async (_what, result) => {
        const seen = await started(store);
        const displaced = interrupted(seen, result);
        const turn = displaced.interrupted ?? doneTurn();
        const after = await took(by("turn-2", seen, displaced));
        expect(after).toMatchObject({
          version: 3,
          fence: seen.fence + 1,
          tailFrom: seen.tailFrom,
          updatedAt: turn.finishedAt,
          counts: {
            messages: seen.counts.messages + turn.messages.length,
            turns: seen.counts.turns + 1,
            bytes: seen.counts.bytes + Buffer.byteLength(encodeTurn(turn)),
          },
          open: { turnId: "turn-2", steps: 0, revision: 0 },
        });
        expect(after.recent).toEqual(new Map(seen.recent).set(turnKey("turn-1"), displaced.record));
        expect(await history(keyOf(seen))).toEqual([doneTurn({ turnId: "turn-0" }), turn]);

        await store.commit(commitOf(after));
        expect(await history(keyOf(seen))).toEqual([
          doneTurn({ turnId: "turn-0" }),
          turn,
          doneTurn({ turnId: "turn-2" }),
        ]);
        await pushOut(keyOf(seen));
        expect((await headOf(store, keyOf(seen))).recent.has(turnKey("turn-1"))).toBe(false);
        const place = { key: keyOf(seen), incarnation: seen.incarnation };
        expect(await store.findTurn(place, turnKey("turn-1"))).toEqual(displaced.record);
        expect((await history(keyOf(seen)))[1]).toEqual(turn);
      });

      test("drops from HEAD what is sealed, and nothing is forgotten", async () => {
        const first = await stored(store);
        const older = Array.from({ length: 5 }, (_, n) =>
          doneTurn({ turnId: `older-${n}`, messages: [userMessage(noise(1000, n))] }),
        );
        for (const turn of older) {
          const open = openTurn({ turnId: turn.turnId });
          const claimed = await claimOf(store, keyOf(first), {
            turnKey: turnKey(turn.turnId),
            open,
          });
          await store.commit(commitOf(claimed, { turn }));
        }
        const it = await claimOf(store, keyOf(first));
        const seen = await keep(store, it, { steps: [step("rain")] });
        const sealed = await store.seal(seen);
        expect([seen.tailFrom, sealed.to]).toEqual([1, 6]);
        const displaced = { ...interrupted(seen, "rain"), sealed };
        const after = await took(by("turn-2", seen, displaced));
        expect(after).toMatchObject({ version: 7, tailFrom: 6 });
        expect(after.tail).toHaveLength(1);
        expect([...after.recent.keys()]).toEqual([turnKey("turn-1")]);
        expect(await history(keyOf(seen))).toEqual([...older, displaced.interrupted]);
        const place = { key: keyOf(seen), incarnation: seen.incarnation };
        for (const [n, { turnId }] of older.entries()) {
          expect(await store.findTurn(place, turnKey(turnId))).toMatchObject({ version: n + 1 });
        }
      });

      test("a try that saw too little changes nothing of the turn that a later one kept", async () => {
        const early = await started(store);
        const seen = await keep(store, early, { steps: [step("snow")] });
        const write = by("turn-2", seen, interrupted(seen, noise(500_000, 2)));
        const refused = { ...write, seen: early, displaced: interrupted(early, noise(500_000, 1)) };
        await expectRefused(store, store.takeOver(refused), seen);
        const after = await took(write);
        await expectRefused(store, store.takeOver(refused), after);
        expect((await history(write.key))[1]).toEqual(write.displaced?.interrupted);
      });
    });

    describe("displace", () => {
      test.each(KINDS)("ends claim and open turn, and %s", async (_kind, displacedOf) => {
        const seen = await started(store);
        const displaced = displacedOf(seen);
        expect(await store.displace(displaceOf(seen, displaced))).toMatchObject({ applied: true });
        const { claim: _claim, open: _open, ...rest } = seen;
        const turn = displaced?.interrupted;
        const recent = new Map(seen.recent);
        if (displaced) recent.set(displaced.turnKey, displaced.record);
        expect(await headOf(store, keyOf(seen))).toEqual({
          ...rest,
          recent,
          ...(turn
            ? {
                version: 3,
                tail: [...seen.tail, turn],
                updatedAt: turn.finishedAt,
                counts: {
                  messages: seen.counts.messages + turn.messages.length,
                  turns: 2,
                  bytes: seen.counts.bytes + Buffer.byteLength(encodeTurn(turn)),
                },
              }
            : {}),
        });
      });

      test("leaves the session to the next turn, and none to a later try of a recorded one", async () => {
        const seen = await started(store);
        await store.displace(displaceOf(seen, abandoned(seen)));
        const free = await headOf(store, keyOf(seen));
        await expectRefused(store, store.claim(claimOn(keyOf(seen))), free);
        const next = await claimOf(store, keyOf(seen), { open: openTurn({ turnId: "turn-2" }) });
        expect(next).toMatchObject({ fence: seen.fence + 1, open: { steps: 0, revision: 0 } });
        expect(await store.commit(commitOf(next))).toMatchObject({ applied: true });
      });

      test("ends a turn that nobody runs", async () => {
        const it = await started(store);
        await store.release({ ...heldBy(it), keepOpen: true });
        const seen = await headOf(store, keyOf(it));
        expect(await store.displace(displaceOf(seen))).toMatchObject({ applied: true });
        expect(await headOf(store, keyOf(it))).not.toHaveProperty("open");
      });

      test("keeps an interrupted turn of 5 MB", async () => {
        const seen = await started(store);
        const displaced = interrupted(seen, noise(5_000_000, 3));
        await store.displace(displaceOf(seen, displaced));
        expect((await history(keyOf(seen)))[1]).toEqual(displaced.interrupted);
      });
    });

    test("a turn that is taken over while none has it keeps the history that it found", async () => {
      const seen = await running(store);
      const after = await took(by("turn-2", seen, interrupted(seen, "rain")));
      expect(await history(keyOf(seen))).toMatchObject([{ turnId: "turn-1" }]);
      await store.release({ ...heldBy(after), keepOpen: false });
      expect(await history(keyOf(seen))).toMatchObject([{ turnId: "turn-1" }]);
    });
  });
};
