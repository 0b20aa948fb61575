/** What every session store has to keep of a checkpoint: when it counts, and when it is refused. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Head } from "../../lib/store/head.ts";
import type { Checkpoint, SessionStore, WriteResult } from "../../lib/store/store.ts";
import { claimOn, commitOf, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import {
  checkpointOf,
  expectRefused,
  headOf,
  heldBy,
  keep,
  keyOf,
  running,
  step,
  whole,
} from "./open-turns.ts";

export const checkpointContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of open turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    /** Nothing of the session changes, nor of its open turn. */
    const expectUntouched = async (stands: Head, write: () => Promise<WriteResult>) => {
      const before = await store.openTurn(stands);
      await expectRefused(store, write(), stands);
      expect(await store.openTurn(stands)).toEqual(before);
    };

    describe("checkpoint", () => {
      test("appends steps, then the results of one of them, and counts revisions", async () => {
        const it = await running(store);
        const steps = [step("rain"), step(null, null), step(null)];
        const one = await keep(store, it, { steps: steps.slice(0, 2) });
        expect(one.open).toMatchObject({ steps: 2, revision: 1 });
        expect(await store.openTurn(one)).toEqual(whole(one, steps.slice(0, 2)));

        const two = await keep(store, one, { step: 1, results: ["snow", null] });
        expect(two.open).toMatchObject({ steps: 2, revision: 2 });
        const known = [step("rain"), step("snow", null)];
        expect(await store.openTurn(two)).toEqual(whole(two, known));

        const three = await keep(store, two, { steps: steps.slice(2) });
        expect(three.open).toMatchObject({ steps: 3, revision: 3 });
        expect(await store.openTurn(three)).toEqual(whole(three, [...known, step(null)]));
      });

      test("results given again stand for those before", async () => {
        const it = await keep(store, await running(store), { steps: [step(null, null)] });
        const half = await keep(store, it, { step: 0, results: [null, "late"] });
        const both = await keep(store, half, { step: 0, results: ["early", "late"] });
        expect(await store.openTurn(both)).toEqual(whole(both, [step("early", "late")]));
      });

      test("extends the claim, and changes nothing else of the session", async () => {
        const it = await running(store);
        const after = await keep(store, it, { steps: [step(null)] });
        expect(after).toEqual({
          ...it,
          claim: { ...it.claim, untilMs: NOW_MS + 60_000 },
          open: { ...it.open, steps: 1, revision: 1 },
        });
      });

      test("never shortens the claim: one that comes late, behind a heartbeat, is refused", async () => {
        const it = await running(store);
        await store.renew({ ...heldBy(it), untilMs: NOW_MS + 90_000 });
        const late = checkpointOf(it, { steps: [step(null)] });
        expect(await store.checkpoint(late)).toMatchObject({
          applied: false,
          seen: { open: { steps: 0 } },
        });
        expect((await headOf(store, keyOf(it))).claim?.untilMs).toBe(NOW_MS + 90_000);
        const again = await store.checkpoint({ ...late, untilMs: NOW_MS + 90_000 });
        expect(again).toMatchObject({ applied: true });
      });

      test("isn't disturbed by new metadata", async () => {
        const it = await running(store);
        await store.setMetadata({
          key: keyOf(it),
          incarnation: it.incarnation,
          metadata: { topic: "rain" },
          seenMetadataVersion: 1,
          updatedAt: "2100-12-01T12:00:05.000000+00:00",
          nowMs: NOW_MS,
        });
        const after = await keep(store, it, { steps: [step("dry")] });
        expect(after).toMatchObject({ metadata: { topic: "rain" }, open: { steps: 1 } });
      });

      const others: [string, (it: Head) => Partial<Checkpoint>][] = [
        ["another fence", (it) => ({ fence: it.fence + 1 })],
        ["another attempt", () => ({ attempt: hex() })],
        ["another incarnation", () => ({ incarnation: hex() })],
        ["an earlier revision", () => ({ revision: 0 })],
        ["a later revision", () => ({ revision: 2 })],
      ];
      test.each(others)("is refused with %s", async (_what, fields) => {
        const it = await keep(store, await running(store), { steps: [step(null)] });
        const more = checkpointOf(it, { steps: [step(null)] }, fields(it));
        await expectUntouched(it, () => store.checkpoint(more));
        const results = checkpointOf(it, { step: 0, results: ["x"] }, fields(it));
        await expectUntouched(it, () => store.checkpoint(results));
      });

      test("is refused the second time, and shows that it was kept", async () => {
        const it = await running(store);
        const write = checkpointOf(it, { steps: [step(null)] });
        await store.checkpoint(write);
        const kept = await headOf(store, keyOf(it));
        expect(kept.open?.revision).toBe(write.revision + 1);
        await expectUntouched(kept, () => store.checkpoint(write));

        const results = checkpointOf(kept, { step: 0, results: ["once"] });
        await store.checkpoint(results);
        const after = await headOf(store, keyOf(it));
        expect(after.open?.revision).toBe(results.revision + 1);
        await expectUntouched(after, () => store.checkpoint(results));
        expect(await store.openTurn(after)).toEqual(whole(after, [step("once")]));
      });

      test("keeps one of ten that are sent at once", async () => {
        const it = await running(store);
        const results = Array.from({ length: 10 }, (_, n) => `result ${n}`);
        const writes = await Promise.all(
          results.map((result) => store.checkpoint(checkpointOf(it, { steps: [step(result)] }))),
        );
        expect(writes.filter(({ applied }) => applied)).toHaveLength(1);
        const after = await headOf(store, keyOf(it));
        const kept = results[writes.findIndex(({ applied }) => applied)] ?? "";
        expect(await store.openTurn(after)).toEqual(whole(after, [step(kept)]));
      });

      const ends: [string, (it: Head) => Promise<unknown>][] = [
        ["was deleted", (it) => store.delete({ ...heldBy(it), nowMs: NOW_MS })],
        [
          "was released, its turn left open",
          (it) => store.release({ ...heldBy(it), keepOpen: true }),
        ],
        ["was released", (it) => store.release({ ...heldBy(it), keepOpen: false })],
        ["was committed to", (it) => store.commit(commitOf(it))],
        [
          "was taken over by another try of the turn",
          (seen) => store.takeOver({ ...claimOn(keyOf(seen)), seen }),
        ],
        [
          "was taken over by another turn",
          (seen) =>
            store.takeOver({
              ...claimOn(keyOf(seen), { open: openTurn({ turnId: "turn-2" }) }),
              seen,
            }),
        ],
      ];
      test.each(ends)("is refused where the session %s", async (_what, end) => {
        const it = await keep(store, await running(store), { steps: [step(null)] });
        expect(await end(it)).toMatchObject({ applied: true });
        const stands = await headOf(store, keyOf(it));
        const late = checkpointOf(it, { step: 0, results: ["late"] });
        await expectUntouched(stands, () => store.checkpoint(late));
      });

      test("is refused where there is no session", async () => {
        const it = head({ claim: { attempt: hex(), turnId: "turn-1", untilMs: NOW_MS } });
        const write = checkpointOf(it, { steps: [step(null)] });
        expect(await store.checkpoint(write)).toEqual({ applied: false, seen: undefined });
      });
    });
  });
};
