/** What every session store asks for before a turn loses its place: that all is as it was seen. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Head } from "../../lib/store/head.ts";
import type { Displaced, SessionStore, WriteResult } from "../../lib/store/store.ts";
import { commitOf, head, hex, NOW_MS, NOW_SECONDS, openTurn } from "../support/heads.ts";
import { abandoned, by, displaceOf, interrupted, KINDS, started } from "./displaced.ts";
import {
  checkpointOf,
  expectRefused,
  headOf,
  heldBy,
  keep,
  keyOf,
  step,
  stored,
} from "./open-turns.ts";

export const displacedConditionsContract = (
  name: string,
  open: () => Promise<SessionStore>,
): void => {
  describe(`${name} as a store of displaced turns`, () => {
    let store: SessionStore;
    beforeAll(async () => {
      store = await open();
    });

    const writes: [string, (seen: Head, displaced?: Displaced) => Promise<WriteResult>][] = [
      ["takeOver", (seen, displaced) => store.takeOver(by("turn-2", seen, displaced))],
      ["displace", (seen, displaced) => store.displace(displaceOf(seen, displaced))],
    ];
    const claim = { attempt: hex(), turnId: "turn-1", untilMs: NOW_MS };
    const both = { fence: 3, claim, open: openTurn() };
    const onlyOpen = { fence: 3, open: openTurn() };
    const onlyClaim = { fence: 3, claim };
    const moved: [string, Partial<Head>, (it: Head) => Head][] = [
      ["another fence", both, (it) => ({ ...it, fence: 2 })],
      ["another fence of an unclaimed session", onlyOpen, (it) => ({ ...it, fence: 2 })],
      ["another attempt", both, (it) => ({ ...it, claim: { ...claim, attempt: hex() } })],
      ["an earlier end of the claim", both, (it) => ({ ...it, claim: { ...claim, untilMs: 1 } })],
      ["no claim", both, ({ claim: _claim, ...it }) => it],
      ["a claim where there is none", onlyOpen, (it) => ({ ...it, claim })],
      ["another open turn", both, (it) => ({ ...it, open: openTurn({ turnId: "turn-3" }) })],
      ["another revision", both, (it) => ({ ...it, open: openTurn({ revision: 1 }) })],
      [
        "another revision of a turn that nobody runs",
        onlyOpen,
        (it) => ({ ...it, open: openTurn({ revision: 1 }) }),
      ],
      ["no open turn", both, ({ open: _open, ...it }) => it],
      ["an open turn where there is none", onlyClaim, (it) => ({ ...it, open: openTurn() })],
      ["another incarnation", both, (it) => ({ ...it, incarnation: hex() })],
    ];
    describe.each(writes)("%s", (_name, write) => {
      describe.each(KINDS)("that %s", (_kind, displacedOf) => {
        test.each(moved)("is refused where %s was seen", async (_what, fields, differently) => {
          const it = await stored(store, fields);
          const seen = differently(it);
          await expectRefused(store, write(seen, displacedOf(it)), it);
        });

        test.each<[string, Partial<Head>]>([
          ["expired", { expiresAtSeconds: NOW_SECONDS }],
          ["deleted", { deletedAtSeconds: NOW_SECONDS - 1 }],
        ])("is refused on a session that is %s", async (_what, fields) => {
          const it = await stored(store, { ...both, ...fields });
          await expectRefused(store, write(it, displacedOf(it)), it);
        });

        test("is refused where there is no session", async () => {
          const it = head(both);
          const refused = await write(it, displacedOf(it));
          expect(refused).toEqual({ applied: false, seen: undefined });
          expect(await store.read(keyOf(it))).toBeUndefined();
        });

        test("is refused where the turn has done more since it was seen", async () => {
          const seen = await started(store);
          const results = await keep(store, seen, { step: 0, results: ["snow"] });
          await expectRefused(store, write(seen, displacedOf(seen)), results);
          const more = await keep(store, results, { steps: [step(null)] });
          await expectRefused(store, write(results, displacedOf(seen)), more);
          expect(await store.openTurn(more)).toMatchObject({ steps: [step("snow"), step(null)] });
        });

        test("is refused where the turn has ended since it was seen", async () => {
          const seen = await started(store);
          await store.commit(commitOf(seen));
          const done = await headOf(store, keyOf(seen));
          await expectRefused(store, write(seen, displacedOf(seen)), done);
        });

        test("is applied once", async () => {
          const seen = await started(store);
          expect(await write(seen, displacedOf(seen))).toMatchObject({ applied: true });
          const after = await headOf(store, keyOf(seen));
          await expectRefused(store, write(seen, displacedOf(seen)), after);
        });

        const late: [string, (it: Head) => Promise<WriteResult>][] = [
          ["checkpoint", (it) => store.checkpoint(checkpointOf(it, { steps: [step(null)] }))],
          ["commit", (it) => store.commit(commitOf(it))],
          ["heartbeat", (it) => store.renew({ ...heldBy(it), untilMs: NOW_MS + 90_000 })],
          ["release", (it) => store.release({ ...heldBy(it), keepOpen: true })],
        ];
        test.each(late)("leaves the displaced runner no %s", async (_what, lateWrite) => {
          const it = await started(store);
          expect(await write(it, displacedOf(it))).toMatchObject({ applied: true });
          await expectRefused(store, lateWrite(it), await headOf(store, keyOf(it)));
        });
      });

      test("with a turn of the history is refused on another version than it was seen on", async () => {
        const it = await stored(store, { ...both, version: 2 });
        for (const version of [1, 3]) {
          const seen = { ...it, version };
          await expectRefused(store, write(seen, interrupted(seen, "rain")), it);
        }
        expect(await write(it, interrupted(it, "rain"))).toMatchObject({ applied: true });
      });

      test("with a record alone doesn't ask for the version", async () => {
        const it = await stored(store, { ...both, version: 2 });
        const seen = { ...it, version: 1 };
        expect(await write(seen, abandoned(seen))).toMatchObject({ applied: true });
        expect(await headOf(store, keyOf(it))).toMatchObject({ version: 2 });
      });
    });
  });
};
