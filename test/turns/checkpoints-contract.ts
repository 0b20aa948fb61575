/** What holds on every store of turns that are kept step by step. */
import { beforeAll, describe, expect, test } from "vitest";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { StoreUnavailableError } from "../../lib/store/errors.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { TurnSupersededError } from "../../lib/turns/errors.ts";
import {
  contents,
  death,
  LEASE_OVER_MS,
  REQUEST,
  scene,
  sentTwice,
  steps,
  times,
  USAGE,
  watchedStore,
} from "./scene.ts";

export const checkpointsContract = (name: string, open: () => Promise<SessionStore>): void => {
  let store: SessionStore;
  beforeAll(async () => {
    store = await open();
  });

  describe(`checkpoints on ${name}`, () => {
    test("a call stands in the store before its tool runs", async () => {
      const seen: unknown[] = [];
      const it = scene(store, {
        replies: times(2, steps(["pay"])),
        does: async () => seen.push(await it.open()) && "paid",
      });
      const { messages } = await it.runner().run({ ...it.key, ...REQUEST });
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
      expect(await it.runner().run({ ...it.key, ...REQUEST })).toMatchObject({ final: "done" });
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
      const turn = it.runner(through).run({ ...it.key, ...REQUEST });
      await expect(turn).rejects.toThrow(TurnSupersededError);
      expect(it.ran).toEqual([]);
      expect(await it.history()).toEqual([]);
    });

    test("a checkpoint that is sent twice is kept once", async () => {
      const { die } = death();
      const it = scene(store, { replies: [steps(["pay"]), die] });
      void it.runner({ checkpoint: sentTwice(store.checkpoint) }).run({ ...it.key, ...REQUEST });
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
        const turn = it.runner(through).run({ ...it.key, ...REQUEST });
        await expect(turn).rejects.toThrow(StoreUnavailableError);
        expect(it.ran).toEqual([]);
        it.clock.advance(LEASE_OVER_MS);
        await it.runner().run({ ...it.key, ...REQUEST });
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
      await it.runner(through).run({ ...it.key, ...REQUEST });
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
      const turn = it.runner(through).run({ ...it.key, ...REQUEST });
      await expect(turn).rejects.toThrow(StoreUnavailableError);
      expect(it.ran.map((run) => run.name)).toEqual(["put"]);
    });
  });
};
