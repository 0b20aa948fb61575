/** What every session store has to give back of a step, whatever it holds. */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { TurnStep } from "../../lib/session/turn.ts";
import type { Kept, SessionStore } from "../../lib/store/store.ts";
import { anyJson } from "../session/arbitraries.ts";
import { openTurn } from "../support/heads.ts";
import { keep, noise, running, step, stepWith, whole, wideNoise } from "./open-turns.ts";

export const stepsContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of open turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    describe("checkpoint", () => {
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
