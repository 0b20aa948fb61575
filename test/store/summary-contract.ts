/** What every session store has to keep of summaries. */
import { beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { head, hex, randomText } from "../support/heads.ts";
import { keyOf, stored } from "./open-turns.ts";

export const summaryContract = (name: string, open: () => Promise<SessionStore>): void => {
  describe(`${name} as a store of summaries`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    test("gives the newest of those that the history holds, to the letter", async () => {
      const it = await stored(store, { version: 20 });
      expect(await store.summary(it)).toBeUndefined();
      for (const to of [5, 9, 100]) {
        await store.saveSummary(it, { to, text: `né😀 up to ${to}\n${randomText(9000)}` });
      }
      const newest = await store.summary(it);
      expect(newest).toMatchObject({ to: 9, text: expect.stringMatching(/^né😀 up to 9\n/) });
      const early = { ...it, version: 8 };
      expect(await store.summary(early)).toMatchObject({ to: 5 });
      expect(await store.summary({ ...it, incarnation: hex() })).toBeUndefined();
      expect(await store.summary(head())).toBeUndefined();
    });

    test("keeps the first of the same turns, and goes with its session", async () => {
      const it = await stored(store, { version: 20 });
      await store.saveSummary(it, { to: 5, text: "one" });
      await store.saveSummary(it, { to: 5, text: "two" });
      expect(await store.summary(it)).toEqual({ to: 5, text: "one" });
      await store.purge({ key: keyOf(it), incarnation: it.incarnation });
      expect(await store.summary(it)).toBeUndefined();
    });
  });
};
