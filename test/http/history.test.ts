import { beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Sent, type Service } from "../support/http.ts";
import { storeKinds } from "./stores.ts";
import {
  allOf,
  dataOf,
  fieldsOf,
  longTalk,
  messagesOf,
  pagesOf,
  question,
  type Talk,
  talkative,
} from "./talk.ts";

const get = (id: string, part: string): Sent => ({
  method: "GET",
  path: `/v1/sessions/${id}/${part}`,
});

describe.each(storeKinds())("pages of a long history on $name", ({ open }) => {
  let store: SessionStore;
  let cold: () => SessionStore;
  let served: Service;
  let talk: Talk;
  beforeAll(async () => {
    cold = await open();
    store = cold();
    served = talkative(store);
    talk = await longTalk(served, "long");
  });

  /** What the turns' own answers say that the history must be. */
  const expectedTurns = () =>
    talk.turns.map(({ json, sent }) => ({
      turn_id: json["turn_id"],
      status: "done",
      version: json["version"],
      started_at: expect.stringMatching(/^2100-12-01T12:00:\d\d\.000000\+00:00$/),
      finished_at: expect.stringMatching(/^2100-12-01T12:00:\d\d\.000000\+00:00$/),
      finish: "final",
      usage: { input_tokens: 0, output_tokens: 0 },
      supersedes: fieldsOf(sent.body)["supersedes"] ?? null,
      superseded: ["k-10", "k-44"].includes(String(json["turn_id"])),
      messages: json["messages"],
    }));
  const expectedMessages = () => messagesOf(talk.turns, ["k-10", "k-44"]);

  test("the history has left HEAD but for its newest turns", async () => {
    const head = await store.read({ owner: "ann", sessionId: "long" });
    expect(head?.tailFrom).toBeGreaterThan(40);
    expect(head).toMatchObject({ version: 47, counts: { turns: 46, messages: 44 * 4 } });
  });

  test.each(
    ["asc", "desc"].flatMap((order) =>
      [1, 3, 7, 45, 46, 47, 1000].map((limit) => ({ order, limit })),
    ),
  )("turns come once each, whole, in order $order, by $limit", async ({ order, limit }) => {
    const pages = await pagesOf(served.handler, get("long", "turns"), { order, limit: `${limit}` });
    const found = pages.flat();
    expect(order === "asc" ? found : found.toReversed()).toEqual(expectedTurns());
    expect(pages).toHaveLength(Math.ceil(46 / limit));
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true);
  });

  test.each(
    ["asc", "desc"].flatMap((order) =>
      [1, 3, 7, 100, 176, 1000].map((limit) => ({ order, limit })),
    ),
  )("messages come once each, in order $order, by $limit", async ({ order, limit }) => {
    const query = { order, limit: `${limit}` };
    const pages = await pagesOf(served.handler, get("long", "messages"), query);
    const found = pages.flat();
    expect(order === "asc" ? found : found.toReversed()).toEqual(expectedMessages());
    expect(pages).toHaveLength(Math.ceil(176 / limit));
  });

  test("a process that has cached nothing gives the same, from any place", async () => {
    for (const order of ["asc", "desc"]) {
      const first = await call(served.handler, {
        ...get("long", "turns"),
        query: { order, limit: "20" },
      });
      const query = { order, cursor: String(first.json["next_cursor"]), limit: "4" };
      const rest = await allOf(talkative(cold()).handler, get("long", "turns"), query);
      const found = [...dataOf(first.json["data"]), ...rest];
      expect(order === "asc" ? found : found.toReversed()).toEqual(expectedTurns());
    }
  });

  test("a page may have another limit than the one before", async () => {
    const first = await call(served.handler, { ...get("long", "messages"), query: { limit: "9" } });
    const query = { cursor: String(first.json["next_cursor"]) };
    const found = [
      ...dataOf(first.json["data"]),
      ...(await allOf(served.handler, get("long", "messages"), query)),
    ];
    expect(found).toEqual(expectedMessages());
  });

  test("turns that come while one pages are at the end, and move nothing", async () => {
    const { handler } = talkative(store);
    const path = "/v1/sessions/long/fork";
    await call(handler, { method: "POST", path, body: { session_id: "growing" } });
    const start = async (part: string, order: string) => {
      const { json } = await call(handler, {
        ...get("growing", part),
        query: { order, limit: "5" },
      });
      return { data: dataOf(json["data"]), cursor: String(json["next_cursor"]) };
    };
    const goOn = async (part: string, order: string, begun: Awaited<ReturnType<typeof start>>) => {
      const query = { order, limit: "5", cursor: begun.cursor };
      return [...begun.data, ...(await allOf(handler, get("growing", part), query))];
    };
    const up = [await start("turns", "asc"), await start("messages", "asc")] as const;
    const down = [await start("turns", "desc"), await start("messages", "desc")] as const;

    const added: Talk["turns"][number][] = [];
    for (const key of ["new-1", "new-2", "new-3", "new-4"]) {
      const sent = question("growing", key, key === "new-4" ? { supersedes: "k-20" } : {});
      const { status, json } = await call(handler, sent);
      expect(status).toBe(200);
      added.push({ sent, json });
    }
    const all = [...talk.turns, ...added];
    const ids = all.map(({ json }) => json["turn_id"]);
    const without = ["k-10", "k-44", "k-20"];

    const idsOf = (turns: unknown[]) => turns.map((turn) => fieldsOf(turn)["turn_id"]);
    expect(idsOf(await goOn("turns", "asc", up[0]))).toEqual(ids);
    expect(idsOf(await goOn("turns", "desc", down[0]))).toEqual(ids.slice(0, 46).toReversed());
    expect(await goOn("messages", "asc", up[1])).toEqual(messagesOf(all, without));
    expect(await goOn("messages", "desc", down[1])).toEqual(
      messagesOf(talk.turns, without).toReversed(),
    );
  });

  test("a cursor is of no use in the other order, nor in another session", async () => {
    const { handler } = served;
    const { json } = await call(handler, { ...get("long", "turns"), query: { limit: "1" } });
    const cursor = String(json["next_cursor"]);
    await call(handler, question("other", "k-1"));
    for (const request of [
      { ...get("long", "turns"), query: { cursor, order: "desc" } },
      { ...get("long", "messages"), query: { cursor, order: "desc" } },
      { ...get("other", "turns"), query: { cursor } },
      { ...get("long", "turns"), query: { cursor: `${cursor}x` } },
    ]) {
      expect(await call(handler, request)).toMatchObject({
        status: 400,
        json: { errors: [{ path: "cursor" }] },
      });
    }
  });

  test.each(["0", "1001", "-1", "1.5", "", "x"])(
    "turns refuse the limit %j (H02)",
    async (limit) => {
      const refused = await call(served.handler, { ...get("long", "turns"), query: { limit } });
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "limit" }] } });
    },
  );
});
