import { beforeAll, describe, expect, test } from "vitest";
import { assistantMessage } from "../../lib/session/message.ts";
import { DamagedSessionError } from "../../lib/store/errors.ts";
import { memorySessionStore } from "../../lib/store/memory/store.ts";
import type { SessionStore, TurnRange } from "../../lib/store/store.ts";
import { call, type Sent, type Service, service } from "../support/http.ts";
import { KEY, told } from "./one-turn.ts";
import { HEAD, keyed, oneTurn, TURNS, turn, workingService } from "./requests.ts";
import { storeKinds } from "./stores.ts";
import { allOf, fieldsOf, longTalk, question, type Talk, talkative } from "./talk.ts";

const get = (id: string, turnId: string): Sent => ({
  method: "GET",
  path: `/v1/sessions/${id}/turns/${encodeURIComponent(turnId)}`,
});

const remove: Sent = { ...HEAD, method: "DELETE" };

describe.each(storeKinds())("one turn of a long history on $name", ({ open }) => {
  let cold: () => SessionStore;
  let served: Service;
  let talk: Talk;
  let listed: unknown[];
  beforeAll(async () => {
    cold = await open();
    served = talkative(cold());
    talk = await longTalk(served, "long");
    listed = await allOf(served.handler, { method: "GET", path: "/v1/sessions/long/turns" });
  });

  test("is what the list and its own answer tell, wherever it lies", async () => {
    const { handler } = talkative(cold());
    for (const [index, { json }] of talk.turns.entries()) {
      const found = await call(handler, get("long", `k-${index + 1}`));
      expect(found).toMatchObject({ status: 200, json: { status: "done" } });
      expect(found.json).toEqual(told(listed[index], json));
    }
    expect((await call(handler, get("long", "k-10"))).json).toMatchObject({ superseded: true });
    expect((await call(handler, get("long", "k-45"))).json).toMatchObject({ supersedes: "k-10" });
  });

  test("is there in a fork too, and not if it came after the fork's last", async () => {
    const { handler } = talkative(cold());
    const body = { at_turn: "k-30", session_id: "fork" };
    await call(handler, { method: "POST", path: "/v1/sessions/long/fork", body });
    for (const key of ["k-1", "k-30"]) {
      const { json } = await call(handler, get("fork", key));
      expect(json).toMatchObject({ session_id: "fork", turn_id: key, version: expect.any(Number) });
    }
    expect((await call(handler, get("fork", "k-31"))).status).toBe(404);
  });

  test("is found by an id that the service made, however old, and in a copy", async () => {
    const { handler } = talkative(cold());
    const answers: Record<string, unknown>[] = [];
    for (let n = 0; n < 12; n++) {
      const { headers: _, ...request } = question("own", `q-${n}`);
      const { json } = await call(handler, request);
      answers.push(json);
    }
    const body = { session_id: "own-fork" };
    await call(handler, { method: "POST", path: "/v1/sessions/own/fork", body });
    const head = await cold().read({ owner: "ann", sessionId: "own" });
    expect(head?.tailFrom).toBeGreaterThan(6);
    const other = talkative(cold()).handler;
    for (const answer of answers) {
      const { replayed: _, ...result } = answer;
      const turnId = String(answer["turn_id"]);
      expect(turnId).toMatch(/^~/);
      expect((await call(other, get("own", turnId))).json).toMatchObject(result);
      expect((await call(other, get("own-fork", turnId))).json).toMatchObject({
        ...result,
        session_id: "own-fork",
      });
    }
  });

  test.each(["k-0", "K-1", "k-1 ", "~k-1", `~${"0".repeat(32)}`, "é", "x".repeat(129), "\n", "~"])(
    "isn't there by another id: %j",
    async (turnId) => {
      const missed = await call(talkative(cold()).handler, get("long", turnId));
      expect(missed).toMatchObject({ status: 404, json: { code: "not_found" } });
      expect(missed.json["detail"]).toContain("no turn");
    },
  );
});

describe("looking for one turn", () => {
  test("looks again where the turn ended while it looked", async () => {
    const store = memorySessionStore();
    const busy = await workingService({ store });
    let looks = 0;
    const opened: SessionStore["openTurn"] = async (head) => {
      looks++;
      busy.finish();
      await busy.running;
      return store.openTurn(head);
    };
    const { handler } = service({ store: { ...store, openTurn: opened } });
    expect((await call(handler, oneTurn("k"))).json).toMatchObject({
      status: "done",
      final: "ok",
    });
    expect(looks).toBe(1);
  });

  test("looks again where the index knows more than the session that it has read", async () => {
    const store = memorySessionStore();
    const { handler } = talkative(store);
    for (let n = 1; n <= 8; n++) await call(handler, question("s", `k-${n}`));
    const stale = await store.read(KEY);
    for (let n = 9; n <= 30; n++) await call(handler, question("s", `k-${n}`));
    let reads = 0;
    const read: SessionStore["read"] = async (key) => (reads++ === 0 ? stale : store.read(key));
    const late = service({ store: { ...store, read } });
    expect((await call(late.handler, oneTurn("k-12"))).json).toMatchObject({ version: 13 });
    expect(reads).toBe(2);
  });

  test("answers 404 where the session is deleted meanwhile, and 500 where it is damaged", async () => {
    const store = memorySessionStore();
    const { handler: busy } = await workingService({ store });
    let isGone = true;
    const gone: SessionStore["openTurn"] = async () => {
      if (isGone) await call(busy, remove);
      throw new DamagedSessionError("a part is missing");
    };
    const { handler } = service({ store: { ...store, openTurn: gone } });
    isGone = false;
    expect((await call(handler, oneTurn("k"))).status).toBe(500);
    isGone = true;
    expect((await call(handler, oneTurn("k"))).status).toBe(404);
  });

  test("reads the history newest first, in bounded stretches, and no further than the turn", async () => {
    const store = memorySessionStore();
    const ranges: TurnRange[] = [];
    const turns: SessionStore["turns"] = (head, range) => {
      ranges.push(range);
      return store.turns(head, range);
    };
    const { handler } = service({ store: { ...store, turns } });
    const messages = Array.from({ length: 950 }, (_, n) => ({ role: "user", content: `${n}` }));
    const body = { session_id: "s", created_at: "2100-12-01T12:00:00Z", metadata: {}, messages };
    await call(handler, { method: "PUT", path: "/v1/sessions/s/snapshot", body });
    await call(handler, turn("hi"));
    const all = (await allOf(handler, TURNS)).map((it) => String(fieldsOf(it)["turn_id"]));

    const rangesFor = async (turnId: string, status: number) => {
      ranges.length = 0;
      expect((await call(handler, oneTurn(turnId))).status).toBe(status);
      return [...ranges];
    };
    // The newest is in HEAD, which names it.
    expect(await rangesFor(all[950] ?? "", 200)).toEqual([{ from: 951, to: 952 }]);
    expect(await rangesFor(all[949] ?? "", 200)).toHaveLength(1);
    for (const found of [await rangesFor(all[0] ?? "", 200), await rangesFor("~x", 404)]) {
      expect(found).toHaveLength(10);
      expect(found.every(({ from, to }) => to - from <= 101)).toBe(true);
      expect(found.map(({ to }) => to).slice(1)).toEqual(
        found.map(({ from }) => from).slice(0, -1),
      );
      expect([found[0]?.to, found.at(-1)?.from]).toEqual([951, 1]);
    }
    // A caller's id that HEAD doesn't know is known to the index, or not at all.
    expect(await rangesFor("x", 404)).toEqual([]);
  });
});

describe("one turn that is too large for an answer (H10)", () => {
  test("is told without its messages, and with the beginning of its texts", async () => {
    const { handler } = service({ replies: [assistantMessage("\n".repeat(2_000_000))] });
    const { json } = await call(handler, keyed("k"));
    const found = await call(handler, oneTurn("k"));
    const [listed] = await allOf(handler, TURNS);
    expect(found.json).toEqual(told(listed, json));
    expect(found.json).toMatchObject({ truncated: true, messages: [] });
    expect(found.json["final"]).toMatch(/^\n{10000,}…$/);
  });

  test("is told with the beginning of its input while it runs", async () => {
    const asked = Promise.withResolvers<void>();
    const { handler } = service({
      maxInputBytes: 5_000_000,
      replies: [
        () => {
          asked.resolve();
          return new Promise(() => {});
        },
      ],
    });
    void call(handler, keyed("k", `x${'"'.repeat(2_000_000)}`));
    await asked.promise;
    const { json } = await call(handler, oneTurn("k"));
    expect(json).toMatchObject({ status: "running", truncated: true });
    expect(json["input"]).toMatch(/^x"{10000,}…$/);
  });
});
