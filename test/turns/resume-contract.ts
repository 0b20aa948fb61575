/** What holds on every store of turns that are kept step by step, and go on where an earlier try of them ended. */
import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { type AgentEvent, ModelFailedError } from "../../lib/agent/agent.ts";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { assistantMessage, type Message, userMessage } from "../../lib/session/message.ts";
import { StoreUnavailableError } from "../../lib/store/errors.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { TurnIdReusedError, TurnSupersededError } from "../../lib/turns/errors.ts";
import {
  death,
  LEASE_OVER_MS,
  scene,
  sentTwice,
  steps,
  times,
  USAGE,
  watchedStore,
} from "./scene.ts";

export const resumeContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });
  const request = { turnId: "k", input: "Hi" };
  const contents = (messages: readonly Message[]) => messages.map(({ content }) => content);

  describe(`checkpoints on ${name}`, () => {
    test("a call stands in the store before its tool runs", async () => {
      const seen: unknown[] = [];
      const it = scene(store, {
        replies: times(2, steps(["pay"])),
        does: async () => seen.push(await it.open()) && "paid",
      });
      const { messages } = await it.runner().run({ ...it.key, ...request });
      expect(seen).toMatchObject([
        {
          turnId: "k",
          input: "Hi",
          steps: [{ message: messages[1], usage: USAGE, results: [null] }],
        },
      ]);
    });

    test("the results are stored while the model is asked again", async () => {
      const it = scene(store, {
        replies: [
          steps(["put", "pay"]),
          async () => {
            await expect.poll(() => it.open()).toMatchObject({ steps: [{ results }] });
            return assistantMessage("done");
          },
        ],
      });
      const results = ["put done", "pay done"];
      expect(await it.runner().run({ ...it.key, ...request })).toMatchObject({ final: "done" });
    });

    test("tools without effects cost no checkpoint", async () => {
      const watched = watchedStore(store);
      const it = scene(watched.store, {
        replies: times(4, steps(["read", "read"], ["read"], ["nope"])),
      });
      await it.runner().run({ ...it.key, input: "Hi" });
      expect(watched.calls).toEqual([
        ...["claim", "create", "seal", "turns", "saveInput"],
        "commit",
      ]);
      expect(it.ran).toHaveLength(3);
    });

    test("a step without effects is kept with the next that has some", async () => {
      const it = scene(store, {
        replies: times(4, steps(["read"], ["read", "read"], ["read", "pay"])),
      });
      let kept: readonly unknown[] = [];
      const through: Partial<SessionStore> = {
        checkpoint: async (write) => {
          const written = await store.checkpoint(write);
          kept = (await it.open())?.steps ?? [];
          return written;
        },
      };
      await it.runner(through).run({ ...it.key, input: "Hi" });
      expect(kept).toMatchObject([
        { results: ["read done"] },
        { results: ["read done", "read done"] },
        { results: ["read done", "pay done"] },
      ]);
      expect(await it.messages()).toHaveLength(10);
    });

    test("where a checkpoint is refused, no tool of its step runs", async () => {
      const it = scene(store, { replies: times(2, steps(["read", "pay"])) });
      const through: Partial<SessionStore> = {
        checkpoint: async (write) => {
          await store.displace({ ...write, seen: await it.head(), nowMs: it.clock.nowMs() });
          return store.checkpoint(write);
        },
      };
      const turn = it.runner(through).run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toEqual([]);
      expect(await it.history()).toEqual([]);
    });

    test("a checkpoint that is sent twice is kept once", async () => {
      const { die } = death();
      const it = scene(store, { replies: [steps(["pay"]), die] });
      void it.runner({ checkpoint: sentTwice(store.checkpoint) }).run({ ...it.key, ...request });
      await expect.poll(() => it.model.calls.length).toBe(2);
      await expect
        .poll(async () => (await it.open())?.steps)
        .toMatchObject([{ results: ["pay done"] }]);
      expect(await it.head()).toMatchObject({ open: { steps: 1, revision: 2 } });
    });

    test.each(["lost", "applied"])(
      "where the store doesn't answer a checkpoint that was %s, no tool runs, and the same turn id goes on later",
      async (fate) => {
        const it = scene(store, { replies: times(9, steps(["put", "pay"])) });
        const through: Partial<SessionStore> = {
          checkpoint: async (write) => {
            if (fate === "applied") await store.checkpoint(write);
            throw new StoreUnavailableError("no answer");
          },
        };
        const turn = it.runner(through).run({ ...it.key, ...request });
        await expect(turn).rejects.toThrow(StoreUnavailableError);
        expect(it.ran).toEqual([]);
        it.clock.advance(LEASE_OVER_MS);
        await it.runner().run({ ...it.key, ...request });
        // Nobody knows then that it never began.
        const paid = fate === "lost" ? "pay done" : OUTCOME_UNKNOWN;
        expect(contents(await it.messages())).toEqual(["Hi", "", "put done", paid, "done"]);
        expect(it.ran).toHaveLength(fate === "lost" ? 2 : 1);
      },
    );

    test("results that can't be stored are not lost to a turn that goes on to its end", async () => {
      const it = scene(store, { replies: times(3, steps(["pay"], ["read"])) });
      const through: Partial<SessionStore> = {
        checkpoint: async (write) => {
          if ("results" in write.kept) throw new StoreUnavailableError("no answer");
          return store.checkpoint(write);
        },
      };
      await it.runner(through).run({ ...it.key, ...request });
      expect(contents(await it.messages())).toEqual([
        "Hi",
        "",
        "pay done",
        "",
        "read done",
        "done",
      ]);
    });

    test("after results that can't be stored no further effect begins", async () => {
      const it = scene(store, { replies: times(3, steps(["put"], ["pay"])) });
      const through: Partial<SessionStore> = {
        checkpoint: async (write) => {
          if ("results" in write.kept) throw new StoreUnavailableError("no answer");
          return store.checkpoint(write);
        },
      };
      const turn = it.runner(through).run({ ...it.key, ...request });
      await expect(turn).rejects.toThrow(StoreUnavailableError);
      expect(it.ran.map((run) => run.name)).toEqual(["put"]);
    });
  });

  describe(`a turn whose runner died, on ${name}`, () => {
    interface Death {
      readonly place: string;
      readonly at: "checkpoint" | "results" | "tool" | "model" | "commit";
      /** The write that it dies at is applied. */
      readonly applied?: boolean;
      /** Steps in the store then; and in all, model calls, tools run, and what the model is told of `pay`. */
      readonly kept: number;
      readonly asked: number;
      readonly ran: readonly string[];
      readonly paid: string;
    }
    const all = ["read", "put", "pay"];
    const again = [...all, "read", "put"];
    const done = { kept: 1, asked: 3, ran: all, paid: "pay done" };
    const unknown = { kept: 1, asked: 2, ran: again, paid: OUTCOME_UNKNOWN };
    const deaths: readonly Death[] = [
      { ...done, place: "before it has stored the calls", at: "checkpoint", kept: 0 },
      {
        ...{ ...unknown, place: "before a tool starts", at: "checkpoint" },
        ...{ applied: true, ran: ["read", "put"] },
      },
      { ...unknown, place: "in its tools", at: "tool" },
      { ...unknown, place: "before it has stored the results", at: "results", asked: 3 },
      { ...done, place: "in the model call behind the results", at: "model" },
      { ...done, place: "before its commit", at: "commit" },
    ];

    test.each(deaths)("$place goes on from there", async (expected) => {
      const { at, applied, kept, asked, ran, paid } = expected;
      const { die, reached } = death();
      let isDead = false;
      const plan = steps(all);
      const it = scene(store, {
        replies: times(9, async (messages) => {
          const isSecond = messages.at(-1)?.role === "tool";
          if (at !== "model" || isDead || !isSecond) return plan(messages);
          await expect.poll(async () => (await it.head()).open?.revision).toBe(2);
          return die();
        }),
        does: (tool) => (at === "tool" && !isDead && tool === "pay" ? die() : `${tool} done`),
      });
      const through: Partial<SessionStore> = {
        checkpoint: async (write) => {
          const isPlace = at === ("results" in write.kept ? "results" : "checkpoint");
          if (isPlace && !applied) return die();
          const written = await store.checkpoint(write);
          return isPlace ? die() : written;
        },
        commit: (write) => (at === "commit" ? die() : store.commit(write)),
      };
      void it.runner(through).run({ ...it.key, ...request });
      await reached;
      isDead = true;
      const left = (await it.open())?.steps ?? [];
      expect(left).toHaveLength(kept);
      it.clock.advance(LEASE_OVER_MS, { wake: false });

      const result = await it.runner().run({ ...it.key, ...request });
      expect(result).toMatchObject({ final: "done", version: 2, replayed: false });
      // Model calls that were thrown away aren't billed to the turn.
      expect(result.usage).toEqual({ inputTokens: 20, outputTokens: 2 });
      expect(it.model.calls).toHaveLength(asked);
      expect(it.ran.map((run) => run.name)).toEqual(ran);
      const keys = new Set(it.ran.map((run) => `${run.name} ${run.key}`));
      expect(keys.size).toBe(new Set(ran).size);
      const messages = await it.messages();
      expect(contents(messages)).toEqual(["Hi", "", "read done", "put done", paid, "done"]);
      expect(messages.slice(1, 1 + kept)).toEqual(left.map(({ message }) => message));
      expect(await it.head()).not.toHaveProperty("open");
      expect(await it.runner().run({ ...it.key, ...request })).toEqual({
        ...result,
        replayed: true,
      });
      expect(it.ran).toHaveLength(ran.length);
    });
  });

  describe(`a turn that goes on, on ${name}`, () => {
    test("after the model failed goes on with the next try of its id, by a plain claim", async () => {
      const watched = watchedStore(store);
      const it = scene(watched.store, {
        replies: [
          steps(["put", "pay"]),
          new Error("overloaded"),
          ...times(2, steps(["put", "pay"])),
        ],
      });
      const { run } = it.runner();
      await expect(run({ ...it.key, ...request })).rejects.toThrow(ModelFailedError);
      const left = await it.head();
      expect(left).toMatchObject({ version: 1, open: { turnId: "k", input: "Hi", steps: 1 } });
      expect(left).not.toHaveProperty("claim");
      it.clock.advance(5000);
      const result = await run({ ...it.key, ...request });
      expect(result).toMatchObject({ final: "done", usage: { inputTokens: 20, outputTokens: 2 } });
      expect(it.ran.map((run) => run.name)).toEqual(["put", "pay"]);
      expect(watched.calls).not.toContain("takeOver");
      // It began when its first try did.
      expect((await it.history())[0]?.startedAt).toBe(left.open?.startedAt);
    });

    test("has as many steps as one that never stopped", async () => {
      const plan = steps(["pay"], ["pay"], ["pay"]);
      const it = scene(store, { maxSteps: 2, replies: [plan, new Error("overloaded"), plan] });
      const { run } = it.runner();
      await expect(run({ ...it.key, ...request })).rejects.toThrow(ModelFailedError);
      expect(await run({ ...it.key, ...request })).toMatchObject({
        finish: "max_steps",
        final: "",
      });
      expect(it.ran).toHaveLength(2);
      expect(it.model.calls).toHaveLength(3);
    });

    test("tells of what was done before, in order", async () => {
      const plan = steps(["read", "pay"], ["put"]);
      const it = scene(store, { replies: [plan, plan, new Error("overloaded"), plan] });
      const { run } = it.runner();
      const [first, second]: AgentEvent[][] = [[], []];
      const tell = (to: AgentEvent[] | undefined) => (event: AgentEvent) => void to?.push(event);
      const failed = run({ ...it.key, ...request, onEvent: tell(first) });
      await expect(failed).rejects.toThrow(ModelFailedError);
      await run({ ...it.key, ...request, onEvent: tell(second) });
      expect(second).toHaveLength(first?.length ?? 0);
      expect(second).toEqual(expect.arrayContaining(first ?? []));
      expect(second?.map(({ type }) => type)).toEqual([
        ...["step.started", "tool.called", "tool.returned", "tool.called", "tool.returned"],
        ...["step.started", "tool.called", "tool.returned"],
        "step.started",
      ]);
    });

    test("is refused with another input, whether it was released or lost its runner", async () => {
      const it = scene(store, { replies: [steps(["pay"]), new Error("overloaded")] });
      const { run } = it.runner();
      await expect(run({ ...it.key, ...request })).rejects.toThrow(ModelFailedError);
      const other = { ...it.key, turnId: "k", input: "Ho" };
      await expect(run(other)).rejects.toThrow(TurnIdReusedError);

      const dead = scene(store, { replies: times(2, steps(["pay"])), does: () => death().die() });
      void dead.runner().run({ ...dead.key, ...request });
      await expect.poll(() => dead.ran.length).toBe(1);
      dead.clock.advance(LEASE_OVER_MS, { wake: false });
      await expect(dead.runner().run({ ...other, ...dead.key })).rejects.toThrow(TurnIdReusedError);
      expect(dead.ran).toHaveLength(1);
    });

    test("has its input and results whole, however large they are", async () => {
      const input = random(200_000);
      const results = [random(3_000_000), random(2000)];
      const left = [...results];
      const plan = steps(["put", "pay"]);
      const it = scene(store, {
        replies: [plan, new Error("overloaded"), plan],
        does: () => left.shift(),
      });
      const { run } = it.runner();
      const large = { ...it.key, turnId: "k", input };
      await expect(run(large)).rejects.toThrow(ModelFailedError);
      expect(await it.open()).toMatchObject({ input, steps: [{ results }] });
      expect(await run(large)).toMatchObject({ final: "done" });
      expect(contents(await it.messages())).toEqual([input, "", ...results, "done"]);
      expect(it.ran).toHaveLength(2);
    });
  });

  describe(`a turn that nobody goes on with, on ${name}`, () => {
    /** A scene with turn `k` left behind, as its runner died in a tool or in the model call before. */
    const abandonedScene = async (at: "tool" | "model") => {
      const { die, reached } = death();
      const it = scene(store, {
        replies: [at === "model" ? die : steps(["pay"]), ...times(60, steps())],
        does: die,
      });
      void it.runner().run({ ...it.key, ...request });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      return it;
    };

    test("shows as the session's open one, and the next turn leaves it out of the history", async () => {
      const it = await abandonedScene("tool");
      expect(await it.head()).toMatchObject({
        version: 1,
        open: { turnId: "k", input: "Hi", steps: 1 },
      });
      await it.runner().run({ ...it.key, turnId: "next", input: "Hello?" });
      expect(it.model.calls.at(-1)?.messages).toEqual([userMessage("Hello?")]);
      expect(contents(await it.messages())).toEqual(["Hello?", "done"]);
      expect(await it.head()).not.toHaveProperty("open");
    });

    test("is never run again, also long after", async () => {
      const it = await abandonedScene("tool");
      const { run } = it.runner();
      const late = () => run({ ...it.key, ...request });
      await run({ ...it.key, input: "Hello?" });
      await expect(late()).rejects.toThrow(/given up/);
      await expect(run({ ...it.key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      for (let n = 0; n < 30; n++) await run({ ...it.key, turnId: `t${n}`, input: random(300) });
      const before = await it.head();
      expect(before.recent.size).toBeLessThan(20);
      const asked = it.model.calls.length;
      await expect(late()).rejects.toThrow(TurnSupersededError);
      await expect(run({ ...it.key, turnId: "k", input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      const twice = it.runner({ claim: sentTwice(store.claim) });
      await expect(twice.run({ ...it.key, ...request })).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toHaveLength(1);
      expect(it.model.calls.length - asked).toBeLessThanOrEqual(3);
      expect(await it.head()).toEqual({ ...before, fence: before.fence + 3 });
    });

    test("gives its place to the next turn also where it was released", async () => {
      const it = scene(store, { replies: [steps(["pay"]), new Error("overloaded"), steps()] });
      const { run } = it.runner();
      await expect(run({ ...it.key, ...request })).rejects.toThrow(ModelFailedError);
      expect(await it.head()).not.toHaveProperty("claim");
      expect(await run({ ...it.key, input: "Hello?" })).toMatchObject({ version: 2 });
      await expect(run({ ...it.key, ...request })).rejects.toThrow(/given up/);
    });

    test("runs afresh if it had done nothing", async () => {
      const it = await abandonedScene("model");
      const { run } = it.runner();
      await run({ ...it.key, input: "Hello?" });
      expect(await run({ ...it.key, ...request })).toMatchObject({ version: 3, replayed: false });
      expect(contents(await it.messages())).toEqual(["Hello?", "done", "Hi", "done"]);
    });

    test("stays where it is when a turn of long ago is delivered again", async () => {
      const { die, reached } = death();
      const plan = steps(["pay"]);
      const it = scene(store, { replies: [...times(20, steps()), ...times(3, plan)], does: die });
      const { run } = it.runner();
      const first = await run({ ...it.key, turnId: "old", input: "Hi" });
      for (let n = 1; n < 20; n++) await run({ ...it.key, turnId: `t${n}`, input: random(300) });
      expect((await it.head()).recent.size).toBeLessThan(12);
      void it.runner().run({ ...it.key, ...request });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });
      const before = await it.head();

      const old = { ...it.key, turnId: "old" };
      expect(await run({ ...old, input: "Hi" })).toEqual({ ...first, replayed: true });
      await expect(run({ ...old, input: "Ho" })).rejects.toThrow(TurnIdReusedError);
      expect(await it.head()).toEqual(before);
      const watched = watchedStore(store);
      await it.runner(watched.store).run({ ...it.key, ...request });
      // Whoever takes over has looked already.
      expect(watched.calls.filter((call) => call === "findTurn")).toHaveLength(1);
      expect(contents(await it.messages()).slice(-4)).toEqual(["Hi", "", OUTCOME_UNKNOWN, "done"]);
      expect(it.ran).toHaveLength(1);
    });

    test("is taken over meanwhile by the very turn whose record is looked for: it gets that result", async () => {
      const { die, reached } = death();
      const replies = [...times(20, steps()), steps(["pay"]), ...times(30, steps())];
      const it = scene(store, { replies, does: die });
      const { run } = it.runner();
      for (let n = 0; n < 20; n++) await run({ ...it.key, turnId: `t${n}`, input: random(300) });
      void it.runner().run({ ...it.key, ...request });
      await reached;
      it.clock.advance(LEASE_OVER_MS, { wake: false });

      const late = { ...it.key, turnId: "late", input: "Hello?" };
      const looking = it.runner({
        findTurn: async (place, turnKey) => {
          if ((await it.history()).length === 20) {
            await run(late);
            for (let n = 20; n < 40; n++)
              await run({ ...it.key, turnId: `t${n}`, input: random(300) });
          }
          return store.findTurn(place, turnKey);
        },
      });
      expect(await looking.run(late)).toMatchObject({ final: "done", version: 22, replayed: true });
    });
  });
};

/** Text that no compressor makes shorter than by a quarter. */
const random = (length: number): string => randomBytes(length).toString("base64").slice(0, length);
