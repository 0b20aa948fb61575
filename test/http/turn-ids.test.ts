/** A turn's id may be any visible ASCII, and in a path it is percent-encoded. */
import { expect, test } from "vitest";
import { send } from "../dev/send.ts";
import { serve } from "../dev/serve.ts";
import { call, type Sent, type Service, service } from "../support/http.ts";

const IDS = [
  "a/b",
  "/",
  "a//b/",
  "k/cancel",
  "100%",
  "%2F",
  "%zz",
  "a%41",
  "a#b",
  "a?b=c&d",
  '"',
  '"quoted"',
  'a"b',
  "'",
  "{id}",
  "{proxy+}",
  "{7}~",
  "$&$1",
  "\\",
  "a+b",
  "<a>;,:@=!*()[]|^`",
  ".",
  "..",
  "cancel",
  "__proto__",
  "x".repeat(128),
];

/** Of every character. */
const encodeAll = (id: string): string =>
  id.replace(/./gs, (it) => `%${it.charCodeAt(0).toString(16).padStart(2, "0")}`);

const turnWith = (id: string): Sent => ({
  method: "POST",
  path: "/v1/sessions/s/turns",
  // In quotes, as the header's own syntax has it: an id that is quoted itself stays so.
  headers: { "idempotency-key": `"${id}"` },
  body: { input: `asked by ${id}` },
});

/** Asks for the turn of this id, and cancels it, at this place in the path. */
const expectFound = async (
  { handler }: Service,
  { id, part, basePath }: { id: string; part: string; basePath?: string },
): Promise<void> => {
  const at = basePath === undefined ? {} : { basePath };
  const path = `/v1/sessions/s/turns/${part}`;
  const found = await call(handler, { method: "GET", path, ...at });
  expect(found).toMatchObject({ status: 200, json: { turn_id: id, status: "done" } });
  const cancelled = await call(handler, { method: "POST", path: `${path}/cancel`, ...at });
  expect(cancelled.status).toBe(204);
};

test.each(IDS)("%s names its turn in a path, however much of it is encoded", async (id) => {
  const served = service();
  for (const other of IDS) {
    const { json } = await call(served.handler, turnWith(other));
    expect(json).toMatchObject({ turn_id: other, replayed: false });
  }
  const whole = encodeAll(id);
  for (const part of [encodeURIComponent(id), whole, whole.toUpperCase()]) {
    await expectFound(served, { id, part });
    await expectFound(served, { id, part, basePath: "/api" });
  }
  // As some clients send them: everything that doesn't part a path.
  const bare = id.replace(/[%/?#]/g, encodeURIComponent);
  await expectFound(served, { id, part: bare });
  await expectFound(served, { id, part: bare, basePath: "/v1" });
});

test.each(["%", "%zz", "a%2", "%E0%A4%A", "%ED%A0%80"])(
  "%s in its place is a bad percent sequence (H02)",
  async (part) => {
    const { handler } = service();
    await call(handler, turnWith("k"));
    for (const request of [
      { method: "GET", path: `/v1/sessions/s/turns/${part}` },
      { method: "POST", path: `/v1/sessions/s/turns/${part}/cancel` },
    ]) {
      const refused = await call(handler, request);
      expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "turn_id" }] } });
      expect(refused.json["detail"]).toContain("percent");
    }
  },
);

test.each([
  ["longer than an id can be", "x".repeat(129)],
  ["very long", "x".repeat(100_000)],
  ["with a space", "k%20"],
  ["with a line break", "k%0A"],
  ["with a NUL", "k%00"],
  ["not ASCII", "%C3%A9"],
  ["encoded twice", "%256B"],
])("what can't be an id names no turn: %s", async (_, part) => {
  const { handler } = service();
  await call(handler, turnWith("k"));
  for (const request of [
    { method: "GET", path: `/v1/sessions/s/turns/${part}` },
    { method: "POST", path: `/v1/sessions/s/turns/${part}/cancel` },
  ]) {
    const missed = await call(handler, request);
    expect(missed).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(missed.text.length).toBeLessThan(2000);
  }
});

test("the local gateway passes each on as it came", async () => {
  const { handler } = service();
  const { url } = await serve(handler);
  for (const id of IDS) {
    const { body, headers } = turnWith(id);
    const made = await send(url, "/v1/sessions/s/turns", {
      method: "POST",
      headers: Object.entries(headers ?? {}).flat(),
      body: JSON.stringify(body),
    });
    expect(JSON.parse(made.text)).toMatchObject({ turn_id: id });
  }
  for (const id of IDS) {
    const path = `/v1/sessions/s/turns/${encodeURIComponent(id)}`;
    const found = await send(url, path);
    expect(JSON.parse(found.text)).toMatchObject({ turn_id: id, status: "done" });
    expect((await send(url, `${path}/cancel`, { method: "POST" })).status).toBe(204);
    // What a browser or fetch takes for a step in the path never arrives as an id.
    if (id === "." || id === "..") continue;
    const fetched = await fetch(`${url}${path}`);
    expect(await fetched.json()).toMatchObject({ turn_id: id });
  }
});
