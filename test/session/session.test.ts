import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError, InvalidSnapshotError } from "../../lib/session/invalid.ts";
import { type JsonValue, MAX_JSON_DEPTH, parseJson } from "../../lib/session/json.ts";
import { assistantMessage, toolMessage, userMessage } from "../../lib/session/message.ts";
import { newSessionId, Session } from "../../lib/session/session.ts";
import { anySession } from "./arbitraries.ts";
import { faultOf } from "./fault.ts";

const empty = { session_id: "s", created_at: "2026-12-01T03:04:05Z", metadata: {}, messages: [] };

describe("a snapshot", () => {
  test("restores to the session that it was made of, through JSON text", () => {
    fc.assert(
      fc.property(anySession, (session) => {
        const snapshot = session.snapshot();
        deepStrictEqual(Session.restore(snapshot), session);
        deepStrictEqual(Session.restore(parseJson(JSON.stringify(snapshot))), session);
        expect(JSON.stringify(Session.restore(snapshot).snapshot())).toBe(JSON.stringify(snapshot));
      }),
      { numRuns: 500 },
    );
  });

  test("has its keys in the order of the Python form, and no others", () => {
    const session = new Session({
      sessionId: "abc",
      createdAt: "2026-12-01T03:04:05.678901+00:00",
      metadata: { b: 1, a: null },
      messages: [
        userMessage("hi"),
        assistantMessage("", [{ id: "c1", name: "add", arguments: { z: 1, a: 2 } }]),
        toolMessage("c1", "3"),
      ],
    });
    Object.assign(session, { cache: "not part of it" });
    expect(JSON.stringify(session.snapshot())).toBe(
      '{"session_id":"abc","created_at":"2026-12-01T03:04:05.678901+00:00","metadata":{"b":1,"a":null},"messages":[' +
        '{"role":"user","content":"hi","tool_calls":[],"tool_call_id":null},' +
        '{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"add","arguments":{"z":1,"a":2}}],"tool_call_id":null},' +
        '{"role":"tool","content":"3","tool_calls":[],"tool_call_id":"c1"}]}',
    );
  });

  test("shares nothing with its session, nor with a session restored from it", () => {
    const session = new Session({
      metadata: { list: [1] },
      messages: [assistantMessage("", [{ id: "c", name: "n", arguments: { list: [1] } }])],
    });
    const snapshot = session.snapshot();
    const text = JSON.stringify(snapshot);
    const restored = Session.restore(snapshot);
    for (const { metadata, messages } of [session, restored]) {
      Object.assign(metadata, { more: 2 });
      Object.assign(metadata["list"] ?? {}, { 1: 2 });
      // A message can't be changed at all.
      expect(() => Object.assign(messages[0]?.toolCalls[0]?.arguments ?? {}, { more: 2 })).toThrow(
        TypeError,
      );
      messages.push(userMessage("later"));
    }
    expect(JSON.stringify(snapshot)).toBe(text);
    expect(JSON.stringify(session.snapshot())).not.toBe(text);
  });

  const refused: readonly (readonly [title: string, snapshot: unknown, fault: string])[] = [
    ["no object", [], ": must be an object, not an array"],
    ["an instance", new Session(), ": must be an object, not an instance of Session"],
    ["an unknown field", { ...empty, version: 1 }, "version: isn't a known field"],
    ["X02 an owner", { ...empty, owner: "me" }, "owner: isn't a known field"],
    [
      "C18 __proto__",
      JSON.parse(JSON.stringify(empty).replace("}", '},"__proto__":{}')),
      "__proto__: isn't a known field",
    ],
    [
      "no id",
      { ...empty, session_id: undefined },
      "session_id: must be 1 to 128 letters, digits, _ or -",
    ],
    [
      "an id with a slash",
      { ...empty, session_id: "a/b" },
      "session_id: must be 1 to 128 letters, digits, _ or -",
    ],
    [
      "no created_at",
      { ...empty, created_at: undefined },
      "created_at: must be an ISO 8601 time with a zone, such as 2026-12-01T03:04:05.678901+00:00",
    ],
    [
      "no metadata",
      { ...empty, metadata: undefined },
      "metadata: must be an object, not undefined",
    ],
    [
      "metadata that is a list",
      { ...empty, metadata: [] },
      "metadata: must be an object, not an array",
    ],
    [
      "C03 a Date in metadata",
      { ...empty, metadata: { lastSeen: new Date(0) } },
      "metadata.lastSeen: an instance of Date can't be written as JSON",
    ],
    ["no messages", { ...empty, messages: undefined }, "messages: must be an array, not undefined"],
    [
      "C14 a message of an unknown kind",
      { ...empty, messages: [{ role: "user", content: "" }, { role: "event" }] },
      "messages[1].role: must be one of system, user, assistant, tool",
    ],
    [
      "C08 bytes in a message",
      { ...empty, messages: [{ role: "user", content: new Uint8Array([1, 2]) }] },
      "messages[0].content: must be a string, not an instance of Uint8Array",
    ],
  ];
  test.each(refused)("with %s is refused with the path of the fault", (_title, snapshot, fault) => {
    const restore = () => Session.restore(snapshot);
    expect(faultOf(restore)).toBe(fault);
    expect(restore).toThrow(InvalidSnapshotError);
    expect(restore).toThrow(expect.objectContaining({ cause: expect.any(InvalidInputError) }));
  });

  test("C19 is read back from its text with arguments and metadata as deep as they may be", () => {
    const deep = (levels: number): JsonValue =>
      Array.from({ length: levels }).reduce<JsonValue>((inner) => [inner], 1.5e-7);
    const session = new Session({
      metadata: { deep: deep(MAX_JSON_DEPTH - 1) },
      messages: [assistantMessage("", [{ id: "c", name: "n", arguments: deep(MAX_JSON_DEPTH) }])],
    });
    const text = JSON.stringify(session.snapshot());
    expect(JSON.stringify(Session.restore(parseJson(text)).snapshot())).toBe(text);
  });

  test.each(["minagent-snapshot.json", "minagent-snapshot-utf8.json"])(
    "that Python wrote (%s) is read and written again without a change",
    (file) => {
      const text = readFileSync(new URL(`../fixtures/${file}`, import.meta.url), "utf8");
      const session = Session.restore(parseJson(text));
      const written = session.snapshot();
      expect(written).toStrictEqual(JSON.parse(text));
      expect(written.created_at).toBe("2100-12-01T03:04:05.678901+00:00");
      expect(written.metadata["floats"]).toStrictEqual([
        0.1,
        1e-7,
        1e16,
        1.5e300,
        5e-324,
        Math.PI,
        1,
        -2.5,
        0.30000000000000004,
      ]);
      expect(written.metadata["ints"]).toStrictEqual([
        0, -7, 9007199254740991, -9007199254740992, 123456789012345680000, 1e21,
      ]);
      expect(session.messages.map(({ role }) => role).join(" ")).toBe(
        "system user assistant tool tool tool assistant",
      );
      expect(session.messages[1]?.content).toBe(
        '北京天气怎么样？\n\t"quoted" \\ 🌦️ 👩‍👩‍👧‍👦 e\u0301',
      );
      expect(session.messages[2]?.toolCalls[2]?.arguments).toBe('{"cmd":"ls');
      expect(session.messages.at(-1)?.content).toBe("晴天 😀 \u2028\u0000");
    },
  );

  test("C06 that Python wrote with a number no double holds is refused with its path", () => {
    const text =
      '{"session_id": "s", "created_at": "2026-12-01T03:04:05+00:00", "metadata": {"n": [9007199254740993]}, "messages": []}';
    expect(faultOf(() => Session.restore(parseJson(text)))).toContain(
      "metadata.n[0]: 9007199254740993",
    );
  });
});

describe("a session", () => {
  test("that is new has 12 hex digits for an id, the present as created_at, and is empty", () => {
    const session = new Session();
    expect(session.sessionId).toMatch(/^[0-9a-f]{12}$/);
    expect(session.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/);
    expect(session.metadata).toEqual({});
    expect(session.messages).toEqual([]);
    expect(new Session().sessionId).not.toBe(session.sessionId);
    expect(newSessionId((length) => new Uint8Array(length).fill(10))).toBe("0a0a0a0a0a0a");
  });

  test.each(["a", "A-Z_09", "x".repeat(128)])("may be called %s", (sessionId) => {
    expect(new Session({ sessionId }).sessionId).toBe(sessionId);
  });

  test.each([
    "",
    "x".repeat(129),
    "a b",
    "a\n",
    "é",
    "a/b",
    "a.b",
    "..",
    "a#b",
    "a\u0000",
    5,
    null,
  ])("S13 can't be called %j", (sessionId) => {
    const fault = ": must be 1 to 128 letters, digits, _ or -";
    expect(faultOf(() => Session.restore({ ...empty, session_id: sessionId }))).toBe(
      `session_id${fault}`,
    );
    if (typeof sessionId !== "string") return;
    expect(faultOf(() => new Session({ sessionId }))).toBe(`sessionId${fault}`);
  });

  test.each([
    "2026-12-01T03:04:05.678901+00:00",
    "2026-12-01T03:04:05.000000+00:00",
    "2026-12-01 03:04:05.6-0330",
    "2026-12-01T03:04Z",
  ])("keeps the letters of the created_at %s", (createdAt) => {
    const session = Session.restore({ ...empty, created_at: createdAt });
    expect(session.createdAt).toBe(createdAt);
    expect(session.snapshot().created_at).toBe(createdAt);
  });

  test("copies what it is given", () => {
    const args = { list: [1] };
    const message = assistantMessage("", [{ id: "c", name: "n", arguments: args }]);
    const metadata = { list: [1] };
    const messages = [message];
    const session = new Session({ metadata, messages });
    session.append(message);
    args.list.push(2);
    metadata.list.push(2);
    messages.pop();
    expect(session.metadata).toEqual({ list: [1] });
    expect(session.messages.map(({ toolCalls }) => toolCalls[0]?.arguments)).toEqual([
      { list: [1] },
      { list: [1] },
    ]);
  });

  test("refuses a message that can't be stored, and is then as it was", () => {
    const session = new Session({ messages: [userMessage("hi")] });
    const before = session.snapshot();
    const bad = { ...userMessage("hi"), content: null } as never;
    expect(faultOf(() => session.append(bad))).toBe("content: must be a string, not null");
    expect(session.snapshot()).toEqual(before);
    expect(faultOf(() => new Session({ messages: [userMessage("hi"), bad] }))).toBe(
      "messages[1].content: must be a string, not null",
    );
  });

  test("C03 doesn't let a value that was put into it since leak into a snapshot", () => {
    const session = new Session({ messages: [userMessage("hi")] });
    Object.assign(session.metadata, { lastSeen: new Date(0) });
    expect(faultOf(() => session.snapshot())).toBe(
      "metadata.lastSeen: an instance of Date can't be written as JSON",
    );
    session.metadata = {};
    session.messages.push({ ...userMessage("hi"), content: 5 } as never);
    expect(faultOf(() => session.snapshot())).toBe(
      "messages[1].content: must be a string, not a number",
    );
  });
});
