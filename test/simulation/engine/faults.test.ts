/** Each fault, chosen by hand. */
import { describe, expect, test } from "vitest";
import type { Table } from "../../../lib/store/dynamodb/requests.ts";
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { StoreThrottledError, StoreUnavailableError } from "../../../lib/store/errors.ts";
import { FAULTS, type Fault } from "../attempts.ts";
import { createFaults, type FaultOptions, faultyTable } from "../faults.ts";
import { createScheduler, NEVER, type Process } from "../scheduler.ts";
import { simulatedTable } from "../table.ts";

const KEY = { pk: "p", sk: "s" };

const PUT_NEW = { condition: ["attribute_not_exists(#pk)"] };

interface Scene {
  readonly table: Table;
  readonly process: Process;
  readonly other: Process;
  readonly items: () => Item[];
  /** In virtual time, from the beginning. */
  readonly afterMs: () => number;
}

/** What one process has of its calls, where these faults meet its attempts, and `answers` all else that is chosen. */
const withFaults = async <T>(
  faults: readonly Fault[],
  live: (scene: Scene) => Promise<T>,
  { answers = {}, ...options }: Partial<FaultOptions> & { answers?: Record<string, number> } = {},
) => {
  const left = [...faults];
  const scheduler = createScheduler({ choices: [], startMs: 0 });
  const choose: typeof scheduler.choose = (odds, label) => {
    if (label === "fault") return FAULTS.indexOf(left.shift() ?? "none");
    return answers[label.split(":")[0] ?? ""] ?? scheduler.choose(odds, label);
  };
  const shared = createFaults({ ...scheduler, choose }, { rate: 0.5, ...options });
  const simulated = simulatedTable();
  const process = scheduler.process("a");
  const table = faultyTable(simulated.asTable(), process, shared);
  let outcome: T | Error | "nothing" = "nothing";
  const other = scheduler.process("other");
  void live({ table, process, other, items: simulated.items, afterMs: scheduler.nowMs }).then(
    (value) => {
      outcome = value;
    },
    (error: unknown) => {
      outcome = error as Error;
    },
  );
  await scheduler.run();
  const trace = shared.trace.map(({ process, outcome }) => `${process} ${outcome}`);
  return { outcome, trace, items: simulated.items(), left };
};

const putOnce = ({ table }: Scene) => table.putIf({ ...KEY, n: 1 }, PUT_NEW);

describe("a conditional write", () => {
  test("that isn't sent is tried again, and applied once", async () => {
    const { outcome, trace } = await withFaults(["unsent"], putOnce);
    expect(outcome).toEqual({ applied: true, item: {} });
    expect(trace).toEqual(["a unsent", "a applied"]);
  });

  test.each([
    ["at once", 0, 0],
    ["after a timeout", 1, 1500],
  ])("whose answer gets lost meets its own effect, %s", async (_when, lost, expectedMs) => {
    let heardMs = -1;
    const live = async (scene: Scene) => {
      const written = await putOnce(scene);
      heardMs = scene.afterMs();
      return written;
    };
    const { outcome, trace } = await withFaults(["lost"], live, { answers: { lost } });
    expect(outcome).toEqual({ applied: false, seen: { ...KEY, n: 1 } });
    expect(trace).toEqual(["a lost: applied", "a refused"]);
    expect(heardMs).toBe(expectedMs);
  });

  test("that is sent twice answers for the first, and its copy comes whenever it does", async () => {
    const live = async (scene: Scene) => {
      const written = await putOnce(scene);
      await scene.table.deleteIf(KEY, { condition: ["attribute_exists(#pk)"] });
      return written;
    };
    const { outcome, trace, items } = await withFaults(["twice"], live, { answers: { delay: 1 } });
    expect(outcome).toEqual({ applied: true, item: {} });
    expect(trace).toEqual(["a twice: applied", "a applied", "network twice: applied"]);
    expect(items).toEqual([{ ...KEY, n: 1 }]);
  });

  test("that comes late is given up and tried again, and comes all the same", async () => {
    const { outcome, trace } = await withFaults(["late"], putOnce, { answers: { delay: 1 } });
    expect(outcome).toEqual({ applied: true, item: {} });
    expect(trace).toEqual(["a late", "a applied", "network late: refused"]);
  });

  test("carries what it was called with, whatever becomes of it", async () => {
    const live = async ({ table }: Scene) => {
      const item = { ...KEY, list: [1] };
      const written = table.putIf(item, PUT_NEW);
      item.list.push(2);
      return written;
    };
    const { items } = await withFaults(["late"], live);
    expect(items).toEqual([{ ...KEY, list: [1] }]);
  });

  test("that fails on an item which isn't there reads what is there since", async () => {
    const change = { condition: ["attribute_exists(#pk)"], set: ["#n = :n"], values: { n: 2 } };
    const live = async ({ table }: Scene) => {
      const failed = table.change(KEY, change);
      void table.put({ ...KEY, n: 1 });
      return failed;
    };
    const { outcome, trace } = await withFaults([], live);
    expect(outcome).toEqual({ applied: false, seen: { ...KEY, n: 1 } });
    expect(trace).toEqual(["a refused", "a done", "a found"]);
  });

  test("is answered without the item by an engine that doesn't send it", async () => {
    const live = async (scene: Scene) => {
      await putOnce(scene);
      return putOnce(scene);
    };
    const { outcome, trace } = await withFaults([], live, { withoutItem: true });
    expect(outcome).toEqual({ applied: false, seen: { ...KEY, n: 1 } });
    expect(trace).toEqual(["a applied", "a refused", "a found"]);
  });
});

describe("a call", () => {
  test("that is never answered is unknown, and may be applied afterwards", async () => {
    const faults: Fault[] = ["outage"];
    const { outcome, trace, items } = await withFaults(faults, putOnce, {
      answers: { outage: 2, delay: 3 },
    });
    expect(outcome).toBeInstanceOf(StoreUnavailableError);
    expect(outcome).not.toBeInstanceOf(StoreThrottledError);
    expect(trace.slice(0, 3)).toEqual(["a late", "a late", "a late"]);
    expect(trace.slice(3).toSorted()).toEqual([
      "network late: applied",
      "network late: refused",
      "network late: refused",
    ]);
    expect(items).toEqual([{ ...KEY, n: 1 }]);
  });

  test("that is throttled each time says so, and was never applied", async () => {
    const faults: Fault[] = ["throttled", "throttled", "throttled"];
    const { outcome, items } = await withFaults(faults, putOnce);
    expect(outcome).toBeInstanceOf(StoreThrottledError);
    expect(items).toEqual([]);
    const last = await withFaults(["throttled", "throttled", "unsent"], putOnce);
    expect(last.outcome).not.toBeInstanceOf(StoreThrottledError);
    const enough = await withFaults(["throttled", "throttled"], putOnce);
    expect(enough.outcome).toEqual({ applied: true, item: {} });
  });

  test("may be slow there or back, in which others come before", async () => {
    const live = async (scene: Scene) => {
      const slow = putOnce(scene);
      void scene.table.putIf({ ...KEY, n: 2 }, PUT_NEW);
      return slow;
    };
    const there = await withFaults(["slow"], live, { answers: { slow: 0 } });
    expect(there.outcome).toEqual({ applied: false, seen: { ...KEY, n: 2 } });
    const back = await withFaults(["slow"], live, { answers: { slow: 1 } });
    expect(back.outcome).toEqual({ applied: true, item: {} });
  });
});

describe("a process", () => {
  const PUT = { ...KEY, n: 1 };

  test.each([
    ["before it sends", { kill: 0, trace: ["a kill"], items: [] }],
    [
      "with the request under way",
      { kill: 1, trace: ["a kill", "network kill: applied"], items: [PUT] },
    ],
    ["before it hears", { kill: 2, trace: ["a kill", "a kill: applied"], items: [PUT] }],
  ])("that is killed %s hears nothing", async (_when, { kill, ...expected }) => {
    let heard = false;
    const live = (scene: Scene) => {
      void scene.table.read({ ...KEY, sk: "other" }).then(() => {
        heard = true;
      });
      return putOnce(scene);
    };
    const answers = { kill, delay: 1 };
    const { outcome, trace, items } = await withFaults(["none", "kill"], live, { answers });
    expect([outcome, heard]).toEqual(["nothing", false]);
    expect({ trace, items }).toEqual({ ...expected, trace: ["a nothing", ...expected.trace] });
  });

  test.each([
    ["before it sends", 0, { stored: 0, heardMs: 5000 }],
    ["before it hears", 1, { stored: 1, heardMs: 45_000 }],
  ])("that is paused %s finds the time gone", async (_when, pause, expected) => {
    const live = async (scene: Scene) => {
      let stored = -1;
      void scene.other.clock.sleep(1, NEVER).then(() => {
        stored = scene.items().length;
      });
      await putOnce(scene);
      return { stored, heardMs: scene.afterMs() };
    };
    const { outcome, items } = await withFaults(["pause"], live, { answers: { pause } });
    expect(outcome).toEqual(expected);
    expect(items).toEqual([PUT]);
  });
});

describe("a batch", () => {
  const items = Array.from({ length: 30 }, (_, n) => ({ pk: "p", sk: String(n).padStart(2, "0") }));

  test("goes in requests of 25, of which others may see a part", async () => {
    const counts: number[] = [];
    const live = async ({ table, process, items: stored }: Scene) => {
      const written = table.putAll(items);
      for (let n = 0; n < 4; n++) {
        await process.point("look");
        counts.push(stored().length);
      }
      await written;
      return stored().length;
    };
    const { outcome, trace } = await withFaults(["torn"], live);
    expect(outcome).toBe(30);
    expect(counts).toContain(13);
    expect(trace).toEqual(["a torn: done", "a torn: done", "a done"]);
  });

  test("of nothing is no request", async () => {
    const { trace } = await withFaults([], async ({ table }) => {
      await table.putAll([]);
      await table.deleteAll([]);
      return table.readAll([]);
    });
    expect(trace).toEqual([]);
  });
});
