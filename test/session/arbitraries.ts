import fc from "fast-check";
import {
  type JsonObject,
  type JsonValue,
  toJsonObject,
  toJsonValue,
} from "../../lib/session/json.ts";
import {
  assistantMessage,
  type Message,
  systemMessage,
  type ToolCall,
  toolMessage,
  userMessage,
} from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";

// `fc.jsonValue` gives -0 too, which JSON text can't hold: the codec makes it 0.
export const anyJson: fc.Arbitrary<JsonValue> = fc
  .jsonValue({ stringUnit: "binary" })
  .map((value) => toJsonValue(value));

export const anyJsonObject: fc.Arbitrary<JsonObject> = fc
  .dictionary(
    fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("__proto__", "constructor", "1")),
    anyJson,
  )
  .map((value) => toJsonObject(Object.fromEntries(Object.entries(value))));

const anyText = fc.string({ unit: "binary" });

const anyCall: fc.Arbitrary<ToolCall> = fc.record(
  { id: fc.oneof(fc.constantFrom("a", "b", "c"), anyText), name: anyText, arguments: anyJson },
  { noNullPrototype: true },
);

/** Messages in any order: results without calls, calls without results, ids used twice. */
export const anyMessage: fc.Arbitrary<Message> = fc.oneof(
  anyText.map(systemMessage),
  anyText.map(userMessage),
  fc
    .tuple(anyText, fc.array(anyCall, { maxLength: 4 }))
    .map(([text, calls]) => assistantMessage(text, calls)),
  fc
    .tuple(fc.oneof(fc.constantFrom("a", "b", "c"), anyText), anyText)
    .map(([id, text]) => toolMessage(id, text)),
);

/** With what its provider keeps with it, if it is a model's. */
export const anyWholeMessage: fc.Arbitrary<Message> = fc
  .tuple(
    anyMessage,
    fc.option(fc.record({ provider: anyText, data: anyJsonObject }, { noNullPrototype: true })),
  )
  .map(([message, data]) =>
    message.role === "assistant" && data
      ? assistantMessage(message.content, message.toolCalls, data)
      : message,
  );

export const anyCreatedAt: fc.Arbitrary<string> = fc
  .tuple(
    fc.date({ min: new Date("1970-01-01"), max: new Date("9998-12-31"), noInvalidDate: true }),
    fc.constantFrom("", ".6", ".678", ".678901", ".000000"),
    fc.constantFrom("Z", "+00:00", "-03:30", "+1400"),
    fc.constantFrom("T", " "),
  )
  .map(([date, fraction, zone, separator]) =>
    [
      date.toISOString().slice(0, 10),
      separator,
      date.toISOString().slice(11, 19),
      fraction,
      zone,
    ].join(""),
  );

export const anySession: fc.Arbitrary<Session> = fc
  .record({
    sessionId: fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/),
    createdAt: anyCreatedAt,
    metadata: anyJsonObject,
    messages: fc.array(anyMessage, { maxLength: 12 }),
  })
  .map((fields) => new Session(fields));
