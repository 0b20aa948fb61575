/** Events of all kinds: sound ones, ones with something wrong, and rubbish. */
import fc from "fast-check";

const oneOf = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

/** As HTTP lets a header's value be, and a little more. */
const value = fc.oneof(
  oneOf(
    "k",
    '"k"',
    '"1.1"',
    '"2"',
    "1",
    "*",
    "",
    '""',
    "~x",
    "application/json",
    "text/plain",
    "__proto__",
  ),
  fc.string({ unit: "binary", maxLength: 20 }),
);

const headers = fc.oneof(
  fc.constant(null),
  fc.dictionary(
    fc.oneof(
      {
        weight: 5,
        arbitrary: oneOf(
          "Content-Type",
          "idempotency-key",
          "If-Match",
          "IF-NONE-MATCH",
          "Accept",
          "Prefer",
        ),
      },
      fc.string({ maxLength: 8 }),
    ),
    value,
    { maxKeys: 3 },
  ),
);

const segment = fc.oneof(
  {
    weight: 6,
    arbitrary: oneOf("s", "t", "k", "sessions", "v1", "messages", "snapshot", "turns", "fork"),
  },
  oneOf(
    "",
    ".",
    "..",
    "%",
    "%zz",
    "%2F",
    "%E0%A4%A",
    "{id}",
    "{proxy+}",
    "$&",
    "__proto__",
    "a%00b",
  ),
);

/** Mostly a route that there is. */
const target = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(
        oneOf(
          "POST /v1/sessions",
          "GET /ping",
          "GET {id}",
          "DELETE {id}",
          "GET /v1/sessions",
          "PATCH {id}",
          "GET {id}/messages",
          "GET {id}/turns",
          "POST {id}/fork",
          "GET {id}/snapshot",
          "PUT {id}/snapshot",
          "POST {id}/turns",
          "GET {id}/turns/k",
          "GET {id}/turns/~x",
          "GET {id}/turns/%",
          "POST {id}/turns/k/cancel",
        ),
        oneOf("s", "t", "u", "%73", "%"),
        oneOf("", "", "/"),
      )
      .map(([route, id, slash]) => {
        const [method = "", path = ""] = route.split(" ");
        return { method, path: `${path.replace("{id}", `/v1/sessions/${id}`)}${slash}` };
      }),
  },
  fc.record({
    method: oneOf("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"),
    path: fc.oneof(
      oneOf(
        "/ping",
        "/v1/sessions",
        "/v1/sessions/s",
        "/v1/sessions/s/turns",
        "/v1/sessions/s/fork",
      ),
      fc.array(segment, { maxLength: 6 }).map((segments) => `/${segments.join("/")}`),
    ),
  }),
);

const field = oneOf(
  "input",
  "at_turn",
  "on_busy",
  "supersedes",
  "session_id",
  "created_at",
  "metadata",
  "messages",
  "__proto__",
  "x",
);

const json = fc.oneof(
  fc.record({ input: fc.string({ unit: "binary", minLength: 1 }) }),
  fc.record(
    {
      input: oneOf("hi", "bye"),
      supersedes: oneOf("k", "x"),
      on_busy: oneOf("reject", "wait", "interrupt", "rollback", "x"),
    },
    { requiredKeys: ["input"] },
  ),
  fc.record(
    { session_id: oneOf("s", "t", "u"), metadata: fc.object() },
    { requiredKeys: ["session_id"] },
  ),
  fc.record({
    session_id: oneOf("s", "t", "u"),
    created_at: oneOf(
      "2100-12-01T12:00:00Z",
      "2100-12-01T11:30:00.5+00:00",
      "9999-12-31T23:59:59Z",
      "no",
    ),
    metadata: fc.object({ maxDepth: 2 }),
    messages: fc.array(
      fc.record({ role: oneOf("user", "assistant", "tool", "x"), content: fc.string() }),
      { maxLength: 4 },
    ),
  }),
  fc.record({ metadata: fc.object({ withNullPrototype: false }) }),
  fc.record(
    { at_turn: oneOf("k", "x"), session_id: oneOf("s", "t", "u", "v") },
    { requiredKeys: [] },
  ),
  fc.dictionary(field, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 }),
  fc.jsonValue({ maxDepth: 3 }),
);

const text = json.map((given) => JSON.stringify(given) ?? "");

/** A body, and whether it is flagged as base64: mostly rightly. */
const body = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(text, fc.constant(false)) },
  {
    weight: 2,
    arbitrary: fc.tuple(
      text.map((given) => Buffer.from(given).toString("base64")),
      fc.constant(true),
    ),
  },
  fc.tuple(
    fc.oneof(
      text,
      fc.constant(null),
      fc.string({ unit: "binary" }),
      oneOf(
        "",
        "null",
        "{",
        "\ufeff{}",
        '{"input":1e999}',
        '{"input":"hi","input":"bye"}',
        "[".repeat(10_000),
      ),
    ),
    fc.boolean(),
  ),
);

export const requestContext = fc.oneof(
  { weight: 8, arbitrary: oneOf("as it is" as const, "of bob" as const) },
  oneOf(
    undefined,
    null,
    {},
    { authorizer: null },
    { identity: null },
    { authorizer: { owner: 5 } },
    { authorizer: "x" },
    { identity: { userArn: "x" } },
  ),
);

/** Method and path mostly go together, and little else does. */
const anyEvent = fc.record({
  target,
  headers,
  query: fc.option(
    fc.dictionary(
      oneOf("limit", "cursor", "order", "x"),
      fc.oneof(oneOf("1", "asc", "desc", "0", ""), fc.string()),
      { maxKeys: 3 },
    ),
    { nil: undefined },
  ),
  body,
  basePath: oneOf(undefined, undefined, "/api", "/v1"),
});

type Event = typeof anyEvent extends fc.Arbitrary<infer Value> ? Value : never;

const soundEvent = (
  method: string,
  path: string,
  {
    headers = fc.constant({}),
    sent = fc.constant(undefined),
  }: {
    readonly headers?: fc.Arbitrary<Record<string, string>>;
    readonly sent?: fc.Arbitrary<unknown>;
  },
): fc.Arbitrary<Event> =>
  fc.tuple(headers, sent).map(([own, content]) => ({
    target: { method, path: `/v1/sessions${path}` },
    headers: { "content-type": "application/json", ...own },
    query: undefined,
    body: [content === undefined ? null : JSON.stringify(content), false],
    basePath: undefined,
  }));

const id = oneOf("s", "t", "u");
const etag = oneOf('"1.1"', '"2.1"', "*");

/** As clients send them. Hardly any other event comes so far. */
const soundEvents = fc.oneof(
  soundEvent("POST", "", { sent: fc.record({ session_id: id }) }),
  soundEvent("POST", "/s/turns", {
    headers: fc.record({ "idempotency-key": oneOf("k", "x") }),
    sent: fc.record({ input: oneOf("hi", "bye") }),
  }),
  soundEvent("PATCH", "/s", {
    headers: fc.record({ "if-match": etag }),
    sent: fc.record({ metadata: fc.record({ name: oneOf("a", "b") }) }),
  }),
  soundEvent("GET", "/s", { headers: fc.record({ "if-none-match": etag }) }),
);

export const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 7, arbitrary: anyEvent },
  { weight: 1, arbitrary: soundEvents },
);
