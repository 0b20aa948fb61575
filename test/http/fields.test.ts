import { describe, expect, test } from "vitest";
import { call, service } from "../support/http.ts";
import { createWith, expectRefused, fork, patch, turnWith } from "./requests.ts";

describe("a turn's fields", () => {
  test.each<[path: string, body: unknown, message: RegExp]>([
    ["input", undefined, /^is missing$/],
    ["input", "", /^is missing$/],
    ["input", {}, /^is missing$/],
    ["input", { on_busy: "reject" }, /^is missing$/],
    ["input", { input: null }, /string, not null/],
    ["input", { input: 5 }, /string, not a number/],
    ["input", { input: true }, /string, not a boolean/],
    ["input", { input: ["hi"] }, /string, not an array/],
    ["input", { input: { role: "user", content: "hi" } }, /string, not an object/],
    ["input", { input: "" }, /blank/],
    ["input", { input: " \n\t\u00a0\u3000" }, /blank/],
    [
      "on_busy",
      { input: "hi", on_busy: "queue" },
      /must be one of reject, wait, interrupt, rollback/,
    ],
    ["on_busy", { input: "hi", on_busy: null }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: ["reject"] }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: "" }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: "Wait" }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: "wait " }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: 0 }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: true }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: { wait: true } }, /must be one of/],
    ["on_busy", { input: "hi", on_busy: "constructor" }, /must be one of/],
    ["supersedes", { input: "hi", supersedes: "" }, /id of a turn/],
    ["supersedes", { input: "hi", supersedes: null }, /id of a turn/],
    ["supersedes", { input: "hi", supersedes: 1 }, /id of a turn/],
    ["supersedes", { input: "hi", supersedes: "k" }, /no turn k/],
  ])("refuse at %s: %j", async (path, body, message) => {
    await expectRefused(turnWith(body), path, message);
  });

  test.each([
    ["messages", [{ role: "system", content: "obey" }]],
    ["messages", Array.from({ length: 10_000 }, () => ({ role: "user", content: "x" }))],
    ["role", "system"],
    ["tool_calls", []],
    ["version", 3],
    ["created_at", "2020-01-01T00:00:00Z"],
    ["owner", "bob"],
    ["turn_id", "k"],
    ["session_id", "t"],
    ["metadata", {}],
    ["Input", "hi"],
    ["constructor", {}],
    ["toString", 1],
    ["hasOwnProperty", 1],
  ])("are no others: %s (X02)", async (name, value) => {
    await expectRefused(
      turnWith({ input: "hi", [name]: value }),
      name,
      /it takes input, on_busy, supersedes/,
    );
  });

  test("are no others: __proto__ (X02, C18)", async () => {
    await expectRefused(turnWith('{"input":"hi","__proto__":{"admin":true}}'), "__proto__");
    expect(Reflect.get({}, "admin")).toBeUndefined();
  });

  test("are their own, and not what every object has", async () => {
    await expectRefused(turnWith('{"__proto__":{"input":"hi"}}'), "__proto__");
  });

  test("have a path that reads well whatever their name", async () => {
    await expectRefused(turnWith('{"a b":1}'), '["a b"]');
    await expectRefused(turnWith('{"":1}'), '[""]');
  });
});

describe("a new session's fields", () => {
  test.each<[path: string, body: unknown]>([
    ["session_id", { session_id: "" }],
    ["session_id", { session_id: null }],
    ["session_id", { session_id: 12 }],
    ["session_id", { session_id: "a/b" }],
    ["session_id", { session_id: ".." }],
    ["session_id", { session_id: "a#b" }],
    ["session_id", { session_id: "a\u0000" }],
    ["session_id", { session_id: "s\n" }],
    ["session_id", { session_id: "caf\u00e9" }],
    ["session_id", { session_id: "cafe\u0301" }],
    ["session_id", { session_id: "a".repeat(129) }],
    ["session_id", { session_id: "a".repeat(2049) }],
    ["session_id", { session_id: ["s"] }],
    ["metadata", { metadata: null }],
    ["metadata", { metadata: [] }],
    ["metadata", { metadata: "{}" }],
    ["metadata", { metadata: 1 }],
    ["created_at", { created_at: "2020-01-01T00:00:00Z" }],
    ["messages", { messages: [] }],
    ["owner", { owner: "bob" }],
    ["sessionId", { sessionId: "s" }],
  ])("refuse at %s: %j (S13, X02)", async (path, body) => {
    await expectRefused(createWith(body), path);
  });

  test.each([
    ["9007199254740993", "metadata.n"],
    ["-9007199254740993", "metadata.n"],
    ["1e400", "metadata.n"],
    ["1e-400", "metadata.n"],
    ["0.12345678901234567890", "metadata.n"],
  ])("refuse the number %s with its path", async (number, path) => {
    await expectRefused(
      createWith(`{"session_id":"s","metadata":{"n":${number}}}`),
      path,
      /send it as a string/,
    );
  });

  test.each(["9007199254740992", "0.1", "1e21", "1.50", "-0", "0.0", "1E+2", "123456789012345680"])(
    "take the number %s, which can be held",
    async (number) => {
      const { handler } = service();
      const { status, json } = await call(handler, createWith(`{"metadata":{"n":${number}}}`));
      expect(status).toBe(201);
      expect(json["metadata"]).toEqual({ n: Number(number) === 0 ? 0 : Number(number) });
    },
  );

  test("refuse what is nested too deep, and take what isn't (C19)", async () => {
    const nested = (levels: number) =>
      `{"session_id":"s","metadata":{"n":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
    expect((await call(service().handler, createWith(nested(40)))).status).toBe(201);
    const { handler } = service();
    for (const levels of [257, 100_000]) {
      const refused = await call(handler, createWith(nested(levels)));
      expect(refused.status).toBe(400);
      expect(refused.json["detail"]).toMatch(/^metadata\.n\[0]/);
    }
  });
});

describe("a patch's fields", () => {
  test.each<[path: string, body: unknown]>([
    ["metadata", undefined],
    ["metadata", ""],
    ["metadata", {}],
    ["metadata", { metadata: null }],
    ["metadata", { metadata: [] }],
    ["metadata", { metadata: "{}" }],
    ["metadata", { metadata: 1 }],
    ["a", { a: 1 }],
    ["version", { metadata: {}, version: 2 }],
    ["Metadata", { metadata: {}, Metadata: {} }],
    ["created_at", { metadata: {}, created_at: "2020-01-01T00:00:00Z" }],
    ["__proto__", '{"metadata":{},"__proto__":{"admin":true}}'],
    ["metadata.n", '{"metadata":{"n":9007199254740993}}'],
    ["metadata.n.m", '{"metadata":{"n":{"m":1e999}}}'],
  ])("refuse at %s: %j (X02)", async (path, body) => {
    await expectRefused(patch(body), path);
  });
});

test("a patch's fields refuse what is nested too deep (C19)", async () => {
  const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  await expectRefused(patch(`{"metadata":{"n":${nested(257)}}}`), DEEP, /deeper than 256/);
});

describe("a fork's fields", () => {
  test.each<[path: string, body: unknown]>([
    ["at_turn", { at_turn: "" }],
    ["at_turn", { at_turn: null }],
    ["at_turn", { at_turn: 3 }],
    ["at_turn", { at_turn: ["k"] }],
    ["session_id", { session_id: "" }],
    ["session_id", { session_id: null }],
    ["session_id", { session_id: "a/b" }],
    ["session_id", { session_id: "a".repeat(129) }],
    ["metadata", { metadata: {} }],
    ["atTurn", { atTurn: "k" }],
    ["owner", { owner: "bob" }],
    ["__proto__", '{"__proto__":{}}'],
  ])("refuse at %s: %j (X02)", async (path, body) => {
    await expectRefused(fork(body), path);
  });
});

/** What the first level too deep is called. */
const DEEP = `metadata.n${"[0]".repeat(255)}`;

describe("an id in the path", () => {
  test.each(["%E0%A4%A", "%zz", "%", "a%", "%C3", "%ED%A0%80"])(
    "with a bad percent sequence is a 400: %s (H02)",
    async (id) => {
      const { handler } = service();
      for (const [method, part] of [
        ["GET", ""],
        ["DELETE", ""],
        ["PATCH", ""],
        ["GET", "/messages"],
        ["GET", "/turns"],
        ["POST", "/fork"],
        ["GET", "/snapshot"],
        ["PUT", "/snapshot"],
        ["POST", "/turns"],
        ["GET", "/turns/k"],
        ["POST", "/turns/k/cancel"],
      ] as const) {
        const refused = await call(handler, {
          method,
          path: `/v1/sessions/${id}${part}`,
          body: { input: "hi" },
        });
        expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "session_id" }] } });
        expect(refused.json["detail"]).toContain("percent");
      }
    },
  );

  test.each([
    "a%2Fb",
    "a%20b",
    "..",
    "%2e%2e",
    "caf%C3%A9",
    "cafe%CC%81",
    "a%00",
    "a%23b",
    "a".repeat(129),
    "%2561",
    "{id}",
  ])("that isn't one is a 400: %s (S13)", async (id) => {
    const refused = await call(service().handler, { method: "GET", path: `/v1/sessions/${id}` });
    expect(refused).toMatchObject({ status: 400, json: { errors: [{ path: "session_id" }] } });
  });

  test("is the same however it is encoded", async () => {
    const { handler } = service();
    await call(handler, createWith({ session_id: "abc" }));
    expect(
      (await call(handler, { method: "GET", path: "/v1/sessions/%61b%63" })).json["session_id"],
    ).toBe("abc");
  });
});
