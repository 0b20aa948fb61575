import { describe, expect, test } from "vitest";
import { createScheduler, NEVER, type Process, type Scheduler, StuckError } from "../scheduler.ts";

/** Three processes of three points each, with time to pass; gives what happened, in order. */
const runOf = async (options: Parameters<typeof createScheduler>[0]) => {
  const scheduler = createScheduler(options);
  const startMs = scheduler.nowMs();
  const happened: string[] = [];
  const live = async ({ name, clock, point }: Process): Promise<void> => {
    for (let n = 0; n < 3; n++) {
      await point(`${n}`);
      happened.push(`${name}${n} at ${scheduler.nowMs() - startMs}`);
      await clock.sleep(scheduler.choose(3, "nap"), NEVER);
    }
  };
  for (const name of ["a", "b", "c"]) void live(scheduler.process(name));
  await scheduler.run();
  return { happened, choices: scheduler.choices };
};

describe("a run", () => {
  test("is the same for the same seed, and for its list of choices", async () => {
    for (let seed = 0; seed < 20; seed++) {
      const run = await runOf({ seed });
      expect(await runOf({ seed })).toEqual(run);
      expect(await runOf({ choices: run.choices })).toEqual(run);
    }
  });

  test("differs from seed to seed", async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, (_, seed) => runOf({ seed })));
    expect(new Set(runs.map(({ happened }) => happened.join())).size).toBe(20);
  });

  test("without choices takes the oldest event each time", async () => {
    const { happened, choices } = await runOf({ choices: [] });
    expect(happened.map((event) => event.slice(0, 2))).toEqual([
      "a0",
      "b0",
      "c0",
      "a1",
      "b1",
      "c1",
      "a2",
      "b2",
      "c2",
    ]);
    expect(new Set(choices)).toEqual(new Set([0]));
  });

  test("goes on by its seed where its choices end", async () => {
    const runs = await Promise.all([3, 4].map((seed) => runOf({ seed, choices: [2] })));
    const [one, other] = runs.map(({ choices }) => choices);
    expect([one?.[0], other?.[0]]).toEqual([2, 2]);
    expect(one).not.toEqual(other);
  });

  test("takes a choice that means nothing any more for the plain one", async () => {
    const scheduler = createScheduler({ choices: [7, 1] });
    expect([scheduler.choose(3, "x"), scheduler.choose(2, "y"), scheduler.choose(9, "z")]).toEqual([
      0, 1, 0,
    ]);
    expect(scheduler.choices).toEqual([0, 1, 0]);
  });

  test("may be continued with what was begun since", async () => {
    const scheduler = createScheduler({ seed: 1 });
    const { point } = scheduler.process("a");
    let count = 0;
    void point("one").then(() => count++);
    await scheduler.run();
    void point("two").then(() => count++);
    await scheduler.run();
    expect(count).toBe(2);
  });

  test("ends with an error that names what is pending, where it would never end", async () => {
    const scheduler = createScheduler({ seed: 1, maxSteps: 50 });
    const { point } = scheduler.process("spinner");
    const spin = async (): Promise<void> => {
      for (;;) await point("again");
    };
    void spin();
    const stuck = await scheduler.run().catch((error: unknown) => error);
    expect(stuck).toBeInstanceOf(StuckError);
    expect(String(stuck)).toContain("spinner: again");
  });
});

describe("choices", () => {
  test("are as likely as their weights say, and aren't listed where there is only one", () => {
    const scheduler = createScheduler({ seed: 5 });
    const counts = [0, 0, 0];
    for (let n = 0; n < 3000; n++) {
      const answer = scheduler.choose([6, 3, 1], "weighted");
      counts[answer] = (counts[answer] ?? 0) + 1;
    }
    expect(counts.map((count) => Math.round(count / 300))).toEqual([6, 3, 1]);
    expect([scheduler.choose(1, "one"), scheduler.choose([5], "one")]).toEqual([0, 0]);
    expect(scheduler.choices).toHaveLength(3000);
  });
});

describe("one event at a time", () => {
  test("all that follows from an event is done before the next one", async () => {
    const scheduler = createScheduler({ seed: 2 });
    const steps: string[] = [];
    const live = async ({ name, point }: Process): Promise<void> => {
      await point("go");
      for (let n = 0; n < 50; n++) {
        steps.push(name);
        await (async () => {
          await Promise.resolve();
        })();
      }
    };
    for (const name of ["a", "b", "c"]) void live(scheduler.process(name));
    await scheduler.run();
    const switches = steps.filter((name, at) => at > 0 && steps[at - 1] !== name);
    expect([steps.length, switches.length]).toEqual([150, 2]);
  });

  test("work outside is waited for, however long it takes", async () => {
    const scheduler = createScheduler({ seed: 2 });
    const steps: string[] = [];
    const live = async ({ name, point }: Process): Promise<void> => {
      await point("go");
      steps.push(`${name} begins`);
      await scheduler.outside(realTime());
      await scheduler.outside(realTime());
      steps.push(`${name} ends`);
    };
    for (const name of ["a", "b"]) void live(scheduler.process(name));
    await scheduler.run();
    const [first, second] = steps[0] === "a begins" ? ["a", "b"] : ["b", "a"];
    expect(steps).toEqual([
      ...[`${first} begins`, `${first} ends`, `${second} begins`, `${second} ends`],
    ]);
  });

  test("work outside that fails says so to who waits for it", async () => {
    const scheduler = createScheduler({ seed: 2 });
    await expect(scheduler.outside(Promise.reject(new Error("broken")))).rejects.toThrow("broken");
    await scheduler.run();
  });
});

describe("time", () => {
  const asleep = async (scheduler: Scheduler, sleeps: readonly number[]): Promise<number[]> => {
    const woke: number[] = [];
    const { clock } = scheduler.process("sleeper");
    for (const ms of sleeps) void clock.sleep(ms, NEVER).then(() => woke.push(ms));
    await scheduler.run();
    return woke;
  };

  test("passes from timer to timer, in their order", async () => {
    const scheduler = createScheduler({ seed: 1, startMs: 1000 });
    expect(await asleep(scheduler, [30_000, 5, 86_400_000, 700])).toEqual([
      5, 700, 30_000, 86_400_000,
    ]);
    expect(scheduler.nowMs()).toBe(86_401_000);
  });

  test("may pass while events are pending, and seldom does", async () => {
    let before = 0;
    for (let seed = 0; seed < 400; seed++) {
      const scheduler = createScheduler({ seed, startMs: 0 });
      const { clock, point } = scheduler.process("a");
      void clock.sleep(30_000, NEVER);
      let isEarly = true;
      void point("request").then(() => {
        isEarly = scheduler.nowMs() === 0;
      });
      await scheduler.run();
      if (!isEarly) before++;
    }
    expect(before).toBeGreaterThan(4);
    expect(before).toBeLessThan(60);
  });

  test("shows as each process's clock has it; the monotonic one knows no skew", () => {
    const scheduler = createScheduler({ seed: 1, startMs: 5000 });
    const { clock } = scheduler.process("ahead", { clockSkewMs: 300 });
    expect([clock.nowMs(), clock.monotonicMs(), scheduler.nowMs()]).toEqual([5300, 0, 5000]);
  });

  test("a sleep ends as soon as its signal aborts, or at once if it has", async () => {
    const scheduler = createScheduler({ seed: 1, startMs: 0 });
    const { clock, point } = scheduler.process("a");
    const control = new AbortController();
    const woke: number[] = [];
    void clock.sleep(1000, control.signal).then(() => woke.push(scheduler.nowMs()));
    void point("abort").then(() => {
      control.abort();
      return clock.sleep(1000, control.signal).then(() => woke.push(scheduler.nowMs()));
    });
    await scheduler.run();
    expect(woke).toEqual([0, 0]);
    expect(scheduler.nowMs()).toBe(0);
  });
});

describe("a process", () => {
  test("that is killed hears nothing any more, and its timers are gone", async () => {
    const scheduler = createScheduler({ seed: 1, startMs: 0 });
    const doomed = scheduler.process("doomed");
    const other = scheduler.process("other");
    const heard: string[] = [];
    void doomed.clock.sleep(1000, NEVER).then(() => heard.push("timer"));
    void doomed.point("before").then(() => heard.push("point"));
    doomed.kill();
    void doomed.point("after").then(() => heard.push("later point"));
    void doomed.clock.sleep(1, NEVER).then(() => heard.push("later timer"));
    void doomed.clock.sleep(1, AbortSignal.abort()).then(() => heard.push("aborted timer"));
    void other.point("go").then(() => heard.push("other"));
    await scheduler.run();
    expect([doomed.alive, other.alive]).toEqual([false, true]);
    expect(heard).toEqual(["other"]);
    expect(scheduler.nowMs()).toBe(0);
  });

  test("that is paused hears nothing until its time has come; for others time goes on", async () => {
    for (let seed = 0; seed < 20; seed++) {
      const scheduler = createScheduler({ seed, startMs: 0 });
      const paused = scheduler.process("paused");
      const other = scheduler.process("other");
      const heard: [string, number][] = [];
      const hear = (what: string) => () => heard.push([what, scheduler.nowMs()]);
      void paused.point("point").then(hear("point"));
      void paused.clock.sleep(10, NEVER).then(hear("timer"));
      void other.clock.sleep(30_000, NEVER).then(hear("lease"));
      paused.pause(40_000);
      await scheduler.run();
      expect(heard[0]).toEqual(["lease", 30_000]);
      expect(new Map(heard)).toEqual(
        new Map([
          ["lease", 30_000],
          ["point", 40_000],
          ["timer", 40_000],
        ]),
      );
    }
  });
});

const realTime = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, 1);
  });
