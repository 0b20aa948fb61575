/** Cleanup as a process, killed between any two of its deletes: what readers, a creator and the next cleanup meet then. */
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import type { HttpHandler } from "../../lib/http/handler.ts";
import { dynamoSessionStore } from "../../lib/store/dynamodb/store.ts";
import type { Head, SessionKey } from "../../lib/store/head.ts";
import { systemClock } from "../../lib/turns/clock.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { startChild } from "../dev/child.ts";
import {
  DAY_MS,
  isHead,
  isOf,
  itemsIn,
  NOTHING,
  nameOf,
  noise,
  sweepOf,
  tableWith,
} from "../store/expiring.ts";
import { type FreshTable, freshTable } from "../support/dynamodb.ts";
import { NOW_MS } from "../support/heads.ts";
import { call, type Reply, type Sent, type Service, service } from "../support/http.ts";

const CHILD = join(import.meta.dirname, "kill-cleanup-child.ts");

const DYING = { owner: "ann", sessionId: "dying" };
const LIVING = { owner: "ann", sessionId: "living" };

const LIFETIME_SECONDS = 3600;

/** All that belongs to a session made at NOW_MS is due by then. */
const LATER_MS = NOW_MS + LIFETIME_SECONDS * 1000 + DAY_MS;

test("cleanup killed between any two deletes harms no session that lives or comes back, shows no dead one, and is finished by the next", async () => {
  const endpoint = inject("dynalite");
  const { items, dyingHead } = await oneExpiredOneLiving(endpoint);
  const [dead, alive] = [items.filter(isOf(DYING)), items.filter(isOf(LIVING))];
  for (const each of [dead, alive]) {
    const kinds = each.map(({ sk }) => String(sk)[0]);
    expect(kinds).toEqual(expect.arrayContaining(["H", "P", "S", "T"]));
  }

  for (let deletes = 0; deletes <= dead.length; deletes++) {
    const table = await tableWith(endpoint, items);
    const isHeld = deletes < dead.length;
    const child = startChild([CHILD, endpoint, table.tableName, `${LATER_MS}`, `${deletes}`]);
    const printed = await child.printed(isHeld ? /held (.*)\n/ : /swept/);
    child.kill("SIGKILL");
    expect(await child.ended).toBe("SIGKILL");
    const left = await itemsIn(table);
    expect(left).toHaveLength(items.length - deletes);

    await expectWhole(table, LIVING, "only life");
    await expectNotFound(table, DYING);
    // Who read HEAD while it lived gets the whole history, or is told that there is no session.
    const outcomes = [contentsOf("first life"), "SessionNotFoundError"];
    expect(outcomes).toContainEqual(await readWith(table, dyingHead));

    const finished = await tableWith(endpoint, left);
    const sessions = isHeld ? 1 : 0;
    const rest = { ...NOTHING, sessions, items: dead.length - deletes - sessions };
    expect(await sweepOf(finished, LATER_MS)).toEqual(rest);
    expect(await itemsIn(finished)).toEqual(alive);
    await expectWhole(finished, LIVING, "only life");

    await talk(laterOn(table), DYING, "second life");
    const both = await itemsIn(table);
    const old = new Set(dead.filter((item) => !isHead(item)).map(nameOf));
    expect(both.filter((item) => old.has(nameOf(item)))).toEqual([]);
    if (isHeld) expect(await deliver(endpoint, printed)).toContain("ConditionalCheckFailed");
    expect(await sweepOf(table, LATER_MS)).toEqual(NOTHING);
    expect(await itemsIn(table)).toEqual(both);
    await expectWhole(table, DYING, "second life");
  }
});

/** One too large for HEAD, and enough that others lie in segments, with their records. */
const inputsOf = (life: string): string[] =>
  [1500, 6000, 1500, 1500].map((bytes, n) => noise(`${life} ${n}`, bytes));

const contentsOf = (life: string): string[] => inputsOf(life).flatMap((input) => [input, "ok"]);

const oneExpiredOneLiving = async (endpoint: string) => {
  const table = await freshTable(endpoint);
  const { handler, clock } = serviceOn(table);
  await talk(handler, DYING, "first life");
  const dyingHead = await dynamoSessionStore(table).read(DYING);
  if (!dyingHead) throw new Error("there is no session");
  clock.advance(LATER_MS - NOW_MS);
  await talk(handler, LIVING, "only life");
  return { items: await itemsIn(table), dyingHead };
};

/** Each is as a new process: it has nothing in memory. */
const serviceOn = (table: FreshTable): Service =>
  service({
    store: dynamoSessionStore(table),
    lifetimeSeconds: LIFETIME_SECONDS,
    maxInputBytes: 10_000,
  });

const laterOn = (table: FreshTable): HttpHandler => {
  const { handler, clock } = serviceOn(table);
  clock.advance(LATER_MS - NOW_MS);
  return handler;
};

const talk = async (handler: HttpHandler, key: SessionKey, life: string): Promise<void> => {
  for (const n of inputsOf(life).keys()) {
    expect(await call(handler, turn(key, life, n))).toMatchObject({ json: { replayed: false } });
  }
};

const turn = ({ sessionId }: SessionKey, life: string, n: number): Sent => ({
  method: "POST",
  path: `/v1/sessions/${sessionId}/turns`,
  headers: { "idempotency-key": `turn-${n}` },
  body: { input: inputsOf(life)[n] },
});

const readAll = (handler: HttpHandler, { sessionId }: SessionKey): Promise<Reply[]> =>
  Promise.all(
    ["", "/messages", "/turns", "/snapshot"].map((path) =>
      call(handler, { method: "GET", path: `/v1/sessions/${sessionId}${path}` }),
    ),
  );

/** On every path, and its turns are still known as done. */
const expectWhole = async (table: FreshTable, key: SessionKey, life: string): Promise<void> => {
  const handler = laterOn(table);
  const messages = contentsOf(life).map((content) => ({ content }));
  const ids = inputsOf(life).map((_, n) => ({ turn_id: `turn-${n}` }));
  expect(await readAll(handler, key)).toMatchObject([
    { json: { message_count: messages.length, turn_count: ids.length } },
    { json: { data: messages, has_more: false } },
    { json: { data: ids, has_more: false } },
    { json: { messages } },
  ]);
  for (const n of ids.keys()) {
    expect(await call(handler, turn(key, life, n))).toMatchObject({ json: { replayed: true } });
  }
};

const expectNotFound = async (table: FreshTable, key: SessionKey): Promise<void> => {
  const handler = laterOn(table);
  for (const reply of await readAll(handler, key)) {
    expect(reply).toMatchObject({ status: 404, json: { code: "not_found" } });
  }
  const { json } = await call(handler, { method: "GET", path: "/v1/sessions" });
  expect(json).toMatchObject({ data: [{ session_id: LIVING.sessionId }], has_more: false });
};

const readWith = async (table: FreshTable, head: Head): Promise<unknown> => {
  const clock = { ...systemClock, nowMs: () => LATER_MS };
  const sessions = createSessions({ store: dynamoSessionStore(table), clock });
  return sessions.export(head).then(
    ({ messages }) => messages.map(({ content }) => content),
    (error: unknown) => (error instanceof Error ? error.name : error),
  );
};

/** Sends the delete that was on its way as its process died; gives the answer. */
const deliver = async (endpoint: string, request: string): Promise<string> => {
  const { headers, body }: { headers: Record<string, string>; body: string } = JSON.parse(request);
  return (await fetch(endpoint, { method: "POST", headers, body })).text();
};
