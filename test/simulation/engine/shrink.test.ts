import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FAULTS } from "../attempts.ts";
import { createFaults, faultyTable, STORMY } from "../faults.ts";
import { createScheduler, type Process, type Scheduler } from "../scheduler.ts";
import { shrink } from "../shrink.ts";
import { simulatedTable } from "../table.ts";

const BUDGET = 10_000;

describe("a list of choices", () => {
  test.each<[string, (list: readonly number[]) => boolean, number[]]>([
    ["one choice that matters, wherever it is", (list) => list.includes(3), [3]],
    ["a choice at its place", (list) => (list[5] ?? 0) >= 2, [0, 0, 0, 0, 0, 2]],
    [
      "two that matter together",
      (list) => list[1] === 1 && (list[7] ?? 0) > 0,
      [0, 1, 0, 0, 0, 0, 0, 1],
    ],
    ["nothing that matters", () => true, []],
    ["three of any kind", (list) => list.filter((it) => it > 0).length >= 3, [1, 1, 1]],
  ])("shrinks to the least with %s", async (_what, fails, least) => {
    const long = Array.from({ length: 300 }, (_, at) => (at * 5 + 1) % 7);
    long[1] = 1;
    expect(fails(long)).toBe(true);
    expect(await shrink(long, async (list) => fails(list), BUDGET)).toEqual(least);
  });

  test("always still fails, and is never longer than it was", async () => {
    const list = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(list, fc.integer({ min: 1, max: 9 }), async (choices, modulus) => {
        const fails = async (it: readonly number[]): Promise<boolean> =>
          it.reduce((sum, choice, at) => sum + choice * at, 0) % modulus === 0;
        fc.pre(await fails(choices));
        const least = await shrink(choices, fails, BUDGET);
        expect(await fails(least)).toBe(true);
        expect(least.length).toBeLessThanOrEqual(choices.length);
      }),
    );
  });

  test("costs no more runs than its budget, and stays as it is where there is none", async () => {
    let runs = 0;
    const fails = async (list: readonly number[]): Promise<boolean> => {
      runs++;
      return list.length > 2;
    };
    const long = Array.from({ length: 100 }, () => 1);
    await shrink(long, fails, 7);
    expect(runs).toBe(7);
    expect(await shrink(long, fails, 0)).toEqual(long);
  });
});

describe("a run", () => {
  /** Whether an increment without a condition counts more often than it was acknowledged. */
  const counts = async (scheduler: Scheduler): Promise<boolean> => {
    const simulated = simulatedTable();
    const faults = createFaults(scheduler, STORMY);
    let acknowledged = 0;
    const live = async (process: Process): Promise<void> => {
      const table = faultyTable(simulated.asTable(), process, faults);
      for (let n = 0; n < 3; n++) {
        const change = { set: ["#n = if_not_exists(#n, :zero) + :one"], condition: [ANYTHING] };
        await table.change({ pk: "p", sk: "s" }, { ...change, values: { zero: 0, one: 1 } });
        acknowledged++;
      }
    };
    for (const name of ["a", "b"]) {
      // Whoever gets no answer knows nothing.
      void live(scheduler.process(name)).catch(() => {});
    }
    await scheduler.run();
    return Number(simulated.items()[0]?.["n"] ?? 0) > acknowledged;
  };

  const ANYTHING = "(attribute_exists(#pk) OR attribute_not_exists(#pk))";

  test("that shows a planted fault shrinks to the one answer that has to get lost for it", async () => {
    const fails = (choices: readonly number[]): Promise<boolean> =>
      counts(createScheduler({ choices }));
    expect(await fails([])).toBe(false);
    let failing: Scheduler | undefined;
    for (let seed = 0; !failing && seed < 50; seed++) {
      const scheduler = createScheduler({ seed });
      if (await counts(scheduler)) failing = scheduler;
    }
    const choices = failing?.choices ?? [];
    expect(choices.length).toBeGreaterThan(10);
    const least = await shrink(choices, fails, BUDGET);
    expect(least).toEqual([0, FAULTS.indexOf("lost")]);
    expect(await shrink(choices, fails, BUDGET)).toEqual(least);
  });
});
