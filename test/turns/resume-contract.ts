/** What holds on every store of turns that go on where an earlier try of them ended. */
import { beforeAll, describe, expect, test } from "vitest";
import { ModelFailedError } from "../../lib/agent/agent.ts";
import type { AgentEvent } from "../../lib/agent/events.ts";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { TurnIdReusedError } from "../../lib/turns/errors.ts";
import { randomText } from "../support/heads.ts";
import {
  contents,
  death,
  LEASE_OVER_MS,
  REQUEST,
  scene,
  steps,
  times,
  watchedStore,
} from "./scene.ts";

export const resumeContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
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
      void it.runner(through).run({ ...it.key, ...REQUEST });
      await reached;
      isDead = true;
      const left = (await it.open())?.steps ?? [];
      expect(left).toHaveLength(kept);
      it.clock.advance(LEASE_OVER_MS, { wake: false });

      const result = await it.runner().run({ ...it.key, ...REQUEST });
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
      expect(await it.runner().run({ ...it.key, ...REQUEST })).toEqual({
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
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow(ModelFailedError);
      const left = await it.head();
      expect(left).toMatchObject({ version: 1, open: { turnId: "k", input: "Hi", steps: 1 } });
      expect(left).not.toHaveProperty("claim");
      it.clock.advance(5000);
      const result = await run({ ...it.key, ...REQUEST });
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
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow(ModelFailedError);
      expect(await run({ ...it.key, ...REQUEST })).toMatchObject({
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
      const failed = run({ ...it.key, ...REQUEST, onEvent: tell(first) });
      await expect(failed).rejects.toThrow(ModelFailedError);
      await run({ ...it.key, ...REQUEST, onEvent: tell(second) });
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
      await expect(run({ ...it.key, ...REQUEST })).rejects.toThrow(ModelFailedError);
      const other = { ...it.key, turnId: "k", input: "Ho" };
      await expect(run(other)).rejects.toThrow(TurnIdReusedError);

      const dead = scene(store, { replies: times(2, steps(["pay"])), does: () => death().die() });
      void dead.runner().run({ ...dead.key, ...REQUEST });
      await expect.poll(() => dead.ran.length).toBe(1);
      dead.clock.advance(LEASE_OVER_MS, { wake: false });
      await expect(dead.runner().run({ ...other, ...dead.key })).rejects.toThrow(TurnIdReusedError);
      expect(dead.ran).toHaveLength(1);
    });

    test("has its input and results whole, however large they are", async () => {
      const input = randomText(200_000);
      const results = [randomText(3_000_000), randomText(2000)];
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
};
