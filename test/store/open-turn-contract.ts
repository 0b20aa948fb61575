/** What every session store has to keep of an open turn: its input and its steps. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Head } from "../../lib/store/head.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { claimOn, commitOf, HASH, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import {
  append,
  claimOf,
  headOf,
  heldBy,
  keep,
  keyOf,
  noise,
  running,
  step,
  stored,
  whole,
  wideNoise,
} from "./open-turns.ts";

export const openTurnContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of open turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    describe("the input of an open turn", () => {
      const claims: [string, (input: string) => Promise<Head>][] = [
        [
          "on a session that is there",
          (input) => running(store, {}, { open: openTurn({ input }) }),
        ],
        [
          "on a session that it creates",
          async (input) => {
            const open = openTurn({ input });
            const it = head({ fence: 1, claim: claimOn(keyOf(head())).claim, open });
            await store.create({ head: it, nowMs: NOW_MS });
            return it;
          },
        ],
        [
          "on a session that is taken over",
          async (input) => {
            const seen = await running(store);
            const open = openTurn({ turnId: "turn-2", input });
            const taken = await store.takeOver({ ...claimOn(keyOf(seen), { open }), seen });
            if (!taken.applied) throw new Error("the take-over was refused");
            return taken.head;
          },
        ],
      ];
      const inputs: [string, string][] = [
        ["", "no text"],
        ["\u{1F600}语e\u0301\u0000", "few letters"],
        [noise(256 * 1024), "256 KB"],
        [wideNoise(2_000_000), "2 MB in letters of three and four bytes"],
      ];
      test.each(
        claims.flatMap(([where, claim]) =>
          inputs.map(([input, what]) => ({ where, what, claim, input })),
        ),
      )("is kept whole: $what, $where", async ({ claim, input }) => {
        const it = await claim(input);
        await store.saveInput(it, input);
        const now = await headOf(store, keyOf(it));
        expect(await store.openTurn(now)).toEqual(whole(now, [], input));
        expect(await store.openTurn(it)).toEqual(whole(it, [], input));
        const later = await keep(store, now, { steps: [step("x")] });
        expect(await store.openTurn(later)).toEqual(whole(later, [step("x")], input));
      });

      test.each(["", "a"])(
        "shows in HEAD by its beginning, cut between letters: %j",
        async (first) => {
          const input = `${first}${"\u{1F600}".repeat(500)}${noise(9000)}`;
          const it = await running(store, {}, { open: openTurn({ input }) });
          const shown = it.open?.input ?? "";
          expect(shown.length).toBeGreaterThan(100);
          expect(input.startsWith(shown)).toBe(true);
          expect(shown.isWellFormed()).toBe(true);
          expect(await headOf(store, keyOf(it))).toEqual(it);
        },
      );

      test("may be saved again, by whoever tries the turn", async () => {
        const input = noise(9000);
        const it = await running(store, {}, { open: openTurn({ input }) });
        await store.saveInput(it, input);
        await store.release({ ...heldBy(it), keepOpen: true });
        const again = await claimOf(store, keyOf(it), { open: openTurn({ input }) });
        await store.saveInput(again, input);
        expect(await store.openTurn(again)).toEqual(whole(again, [], input));
      });
    });

    describe("openTurn", () => {
      const moves: [string, (it: Head) => Promise<unknown>][] = [
        ["a step more is kept", (it) => keep(store, it, { steps: [step(null)] })],
        ["a result more is kept", (it) => keep(store, it, { step: 0, results: ["x"] })],
        ["the turn is done", (it) => store.commit(commitOf(it))],
        ["the turn is given up", (it) => store.release({ ...heldBy(it), keepOpen: false })],
        ["the session is deleted", (it) => store.delete({ ...heldBy(it), nowMs: NOW_MS })],
        ["another turn has its place", (it) => replace(it, openTurn({ turnId: "turn-2" }))],
        [
          "the same id with another input has its place",
          async (it) => {
            await replace(it, openTurn({ requestHash: hex() }));
            const now = await headOf(store, keyOf(it));
            await keep(store, now, { steps: [step("other")] });
          },
        ],
        [
          "a namesake runs the same turn",
          async (it) => {
            await store.delete({ ...heldBy(it), nowMs: NOW_MS });
            const over = await headOf(store, keyOf(it));
            const next = head(keyOf(it));
            await store.create({ head: next, over, nowMs: NOW_MS });
            await keep(store, await claimOf(store, keyOf(it)), { steps: [step("other")] });
          },
        ],
      ];
      const replace = async (seen: Head, open: ReturnType<typeof openTurn>): Promise<void> => {
        const taken = await store.takeOver({ ...claimOn(keyOf(seen), { open }), seen });
        expect(taken.applied).toBe(true);
      };
      test.each(moves)("gives nothing of a turn as it was, when %s", async (_what, move) => {
        const it = await keep(store, await running(store), { steps: [step(null)] });
        expect(await store.openTurn(it)).toBeDefined();
        await move(it);
        expect(await store.openTurn(it)).toBeUndefined();
      });

      test("gives nothing where there is no open turn, and where there is no session", async () => {
        expect(await store.openTurn(await stored(store))).toBeUndefined();
        expect(await store.openTurn(head({ open: openTurn() }))).toBeUndefined();
      });
    });

    describe("the next try", () => {
      const started = async (): Promise<Head> => {
        const it = await running(store, {}, { open: openTurn({ input: noise(9000) }) });
        await store.saveInput(it, noise(9000));
        const asked = await keep(store, it, { steps: [step("a"), step(null)] });
        return keep(store, asked, { step: 1, results: ["b"] });
      };

      test("of a turn left open has its steps, and goes on at its revision", async () => {
        const it = await started();
        await store.release({ ...heldBy(it), keepOpen: true });
        const { claim: _claim, ...left } = it;
        expect(await headOf(store, keyOf(it))).toEqual(left);

        const again = await claimOf(store, keyOf(it), { open: openTurn({ input: noise(9000) }) });
        expect(again.open).toEqual(it.open);
        const steps = [step("a"), step("b")];
        expect(await store.openTurn(again)).toEqual(whole(again, steps, noise(9000)));
        const more = await keep(store, again, { steps: [step("c")] });
        expect(more.open).toMatchObject({ steps: 3, revision: 3 });
        const all = [...steps, step("c")];
        expect(await store.openTurn(more)).toEqual(whole(more, all, noise(9000)));
      });

      test("of a turn that is taken over from a dead runner has its steps", async () => {
        const seen = await started();
        const open = openTurn({ input: noise(9000) });
        const taken = await store.takeOver({ ...claimOn(keyOf(seen), { open }), seen });
        if (!taken.applied) throw new Error("the take-over was refused");
        expect(taken.head.open).toEqual(seen.open);
        expect(await store.openTurn(taken.head)).toEqual(
          whole(taken.head, [step("a"), step("b")], noise(9000)),
        );
      });

      test.each(["turn-1", "turn-2"])(
        "of a turn that was given up starts with nothing, as %s does",
        async (turnId) => {
          const it = await started();
          await store.release({ ...heldBy(it), keepOpen: false });
          const again = await claimOf(store, keyOf(it), { open: openTurn({ turnId }) });
          expect(again.open).toEqual(openTurn({ turnId }));
          expect(await store.openTurn(again)).toEqual(whole(again, []));
        },
      );

      test("of the turn that follows a committed one starts with nothing", async () => {
        const it = await started();
        await store.commit(commitOf(it));
        const next = await claimOf(store, keyOf(it), { open: openTurn({ turnId: "turn-2" }) });
        expect(await store.openTurn(next)).toEqual(whole(next, []));
      });

      test("doesn't know the steps of other sessions, nor of a purged one", async () => {
        const it = await started();
        const other = await started();
        await keep(store, other, { steps: [step("other")] });
        await store.delete({ ...heldBy(it), nowMs: NOW_MS });
        await store.purge({ key: keyOf(it), incarnation: it.incarnation });
        expect(await store.openTurn(it)).toBeUndefined();
        const now = await headOf(store, keyOf(other));
        const steps = [step("a"), step("b"), step("other")];
        expect(await store.openTurn(now)).toEqual(whole(now, steps, noise(9000)));
      });
    });

    test("the steps of a turn don't outlive it: its history and records are those of any turn", async () => {
      const it = await keep(store, await running(store), { steps: [step(noise(9000))] });
      const commit = commitOf(it);
      await store.commit(commit);
      await append(store, keyOf(it), { ...commit.turn, turnId: "turn-2" });
      const now = await headOf(store, keyOf(it));
      expect(now).not.toHaveProperty("open");
      expect(now.recent.get(turnKey("turn-1"))).toMatchObject({
        version: 1,
        outcome: "done",
        requestHash: HASH,
      });
      expect(await store.turns(now, { from: 1, to: 3 })).toMatchObject([
        { turnId: "turn-1" },
        { turnId: "turn-2" },
      ]);
    });
  });
};
