/** What every session store has to keep of a turn that runs: its input, and the steps that it has done. */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { TurnStep } from "../../lib/session/turn.ts";
import { turnKey } from "../../lib/store/keys.ts";
import type { Checkpoint, Head, Kept, SessionStore, WriteResult } from "../../lib/store/store.ts";
import { anyJson } from "../session/arbitraries.ts";
import { claimOn, commitOf, HASH, head, hex, NOW_MS, openTurn } from "../support/heads.ts";
import {
  append,
  checkpointOf,
  claimOf,
  headOf,
  heldBy,
  keep,
  keyOf,
  noise,
  running,
  step,
  stepWith,
  stored,
  wideNoise,
} from "./open-turns.ts";

export const checkpointContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of open turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    /** Nothing of the session changes, nor of its open turn. */
    const expectRefused = async (stands: Head, write: () => Promise<WriteResult>) => {
      const before = await store.openTurn(stands);
      expect(await write()).toEqual({ applied: false, seen: stands });
      expect(await store.read(keyOf(stands))).toEqual(stands);
      expect(await store.openTurn(stands)).toEqual(before);
    };
    /** Its open turn as `openTurn` gives it. */
    const whole = (it: Head, steps: readonly TurnStep[], input = it.open?.input) => {
      if (!it.open) throw new Error("there is no open turn");
      const { revision: _revision, ...turn } = it.open;
      return { ...turn, input, steps };
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

      test.each(HOSTILE_STEPS)("gives a step with %s back as it was", async (_what, hostile) => {
        const it = await keep(store, await running(store), { steps: [hostile, step(null)] });
        expect(await store.openTurn(it)).toEqual(whole(it, [hostile, step(null)]));

        const bare = { ...hostile, results: hostile.results.map(() => null) };
        const asked = await keep(store, await running(store), { steps: [bare] });
        const answered = await keep(store, asked, { step: 0, results: hostile.results });
        expect(await store.openTurn(answered)).toEqual(whole(answered, [hostile]));
      });

      test("gives back whatever an engine can make", async () => {
        const turn = fc.record({
          input: ANY_TEXT,
          before: fc.array(ANY_STEP, { maxLength: 3 }),
          last: ANY_STEP,
        });
        await fc.assert(
          fc.asyncProperty(turn, async ({ input, before, last }) => {
            const it = await running(store, {}, { open: openTurn({ input }) });
            await store.saveInput(it, input);
            const bare = { ...last, results: last.results.map(() => null) };
            const asked = await keep(store, it, { steps: [...before, bare] });
            expect(await store.openTurn(asked)).toEqual(whole(asked, [...before, bare], input));
            const kept = { step: before.length, results: last.results };
            const answered = await keep(store, asked, kept);
            expect(await store.openTurn(answered)).toEqual(
              whole(answered, [...before, last], input),
            );
          }),
          { numRuns: 30 },
        );
      });

      const large: [string, Kept[], TurnStep[]][] = [
        [
          "a step of 300 KB",
          [{ steps: [stepWith(noise(300_000), [])] }],
          [stepWith(noise(300_000), [])],
        ],
        [
          "arguments of 300 KB in letters of three and four bytes",
          [{ steps: [stepWith("", [{ id: "a", name: "put", arguments: WIDE_TEXT }])] }],
          [stepWith("", [{ id: "a", name: "put", arguments: WIDE_TEXT }])],
        ],
        [
          "results of 5 MB",
          [{ steps: [step(null, null)] }, { step: 0, results: [noise(5_000_000), ""] }],
          [step(noise(5_000_000), "")],
        ],
        [
          "large steps among small ones, kept at once",
          [
            {
              steps: [
                step("a"),
                stepWith(noise(300_000, 2), []),
                step(noise(900_000), null),
                step(null),
              ],
            },
            { step: 3, results: [noise(20_000)] },
            { steps: [stepWith(noise(3000, 3), []), step(null)] },
          ],
          [
            step("a"),
            stepWith(noise(300_000, 2), []),
            step(noise(900_000), null),
            step(noise(20_000)),
            stepWith(noise(3000, 3), []),
            step(null),
          ],
        ],
      ];
      test.each(large)("takes %s", async (_what, checkpoints, steps) => {
        let it = await running(store);
        for (const kept of checkpoints) it = await keep(store, it, kept);
        expect(await store.openTurn(it)).toEqual(whole(it, steps));
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
        await expectRefused(it, () => store.checkpoint(more));
        const results = checkpointOf(it, { step: 0, results: ["x"] }, fields(it));
        await expectRefused(it, () => store.checkpoint(results));
      });

      test("is refused the second time, and shows that it was kept", async () => {
        const it = await running(store);
        const write = checkpointOf(it, { steps: [step(null)] });
        await store.checkpoint(write);
        const kept = await headOf(store, keyOf(it));
        expect(kept.open?.revision).toBe(write.revision + 1);
        await expectRefused(kept, () => store.checkpoint(write));

        const results = checkpointOf(kept, { step: 0, results: ["once"] });
        await store.checkpoint(results);
        const after = await headOf(store, keyOf(it));
        expect(after.open?.revision).toBe(results.revision + 1);
        await expectRefused(after, () => store.checkpoint(results));
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
        await expectRefused(stands, () => store.checkpoint(late));
      });

      test("is refused where there is no session", async () => {
        const it = head({ claim: { attempt: hex(), turnId: "turn-1", untilMs: NOW_MS } });
        const write = checkpointOf(it, { steps: [step(null)] });
        expect(await store.checkpoint(write)).toEqual({ applied: false, seen: undefined });
      });
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

/** 300 KB. */
const WIDE_TEXT = wideNoise(300_000);

const HOSTILE_STEPS: [string, TurnStep][] = [
  ["no text and no call", stepWith("", [])],
  [
    "letters of all lengths",
    stepWith(
      "aé语\u{1F600}\u0000\uFFFF\u2028\u202E",
      [{ id: "语", name: "\u{10FFFF}", arguments: "\u{1F600}" }],
      ["é\u0000语\u{1F600}"],
    ),
  ],
  [
    "one id and empty names throughout",
    stepWith(
      "x",
      [1, 2, 3].map(() => ({ id: "", name: "", arguments: {} })),
      ["", null, "null"],
    ),
  ],
  [
    "arguments of every kind",
    stepWith(
      "",
      [
        null,
        false,
        0,
        1e21,
        -1.5,
        "",
        [],
        [[], {}, [null]],
        { b: { "": "", 语: [1e-7] }, a: 1, "1": 2 },
        JSON.parse('{"__proto__":{"admin":true},"constructor":{}}'),
        '{"cmd":"ls',
      ].map((args, n) => ({ id: `${n}`, name: "constructor", arguments: args })),
    ),
  ],
];

const ANY_TEXT = fc.string({ unit: "binary" });

const ANY_STEP: fc.Arbitrary<TurnStep> = fc
  .record({
    text: ANY_TEXT,
    calls: fc.array(
      fc.record(
        {
          call: fc.record(
            { id: ANY_TEXT, name: ANY_TEXT, arguments: anyJson },
            { noNullPrototype: true },
          ),
          result: fc.option(ANY_TEXT),
        },
        { noNullPrototype: true },
      ),
      { maxLength: 4 },
    ),
    usage: fc.record({ inputTokens: fc.nat(), outputTokens: fc.nat() }, { noNullPrototype: true }),
  })
  .map(({ text, calls, usage }) => ({
    ...stepWith(
      text,
      calls.map(({ call }) => call),
      calls.map(({ result }) => result),
    ),
    usage,
  }));
