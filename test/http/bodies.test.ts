import { describe, expect, test } from "vitest";
import { call, service } from "../support/http.ts";
import { cancel, createWith, expectRefused, fork, patch, turnWith } from "./requests.ts";

/** Every request that takes a body of its own form, but an import. */
const allWith = (body: unknown) => [
  createWith(body),
  turnWith(body),
  patch(body),
  fork(body),
  cancel("k", body),
];

describe("a body", () => {
  test.each(["null", "5", "[1]", '"hi"', "true"])(
    "that isn't an object is a 400: %s (H04)",
    async (body) => {
      for (const request of allWith(body))
        await expectRefused(request, "", /must be an object, not/);
    },
  );

  test.each([
    " ",
    "{",
    '{"input":"hi"',
    "{'input':'hi'}",
    '{"input":"hi",}',
    "input=hi",
    "NaN",
    "\u0000",
    '{"input":"\n"}',
    "{}{}",
  ])("that isn't JSON is a 400: %j (H04)", async (body) => {
    for (const request of allWith(body)) await expectRefused(request, "", /isn't valid JSON/);
  });

  test("may begin with a byte order mark (H04)", async () => {
    expect((await call(service().handler, turnWith('\ufeff{"input":"hi"}'))).status).toBe(200);
  });

  test.each([
    ["headers null", null],
    ["no headers", {}],
  ])("isn't needed by GET and DELETE: %s (H04)", async (_, headers) => {
    const { handler } = service();
    expect((await call(handler, createWith({ session_id: "s" }, headers))).status).toBe(201);
    for (const path of [
      "/ping",
      "/v1/sessions/s",
      "/v1/sessions",
      "/v1/sessions/s/messages",
      "/v1/sessions/s/turns",
      "/v1/sessions/s/snapshot",
    ]) {
      expect((await call(handler, { method: "GET", path, headers })).status).toBe(200);
    }
    expect(
      (await call(handler, { method: "DELETE", path: "/v1/sessions/s", headers })).status,
    ).toBe(204);
  });

  test("of GET and DELETE doesn't matter", async () => {
    const { handler } = service();
    await call(handler, createWith({ session_id: "s" }));
    const odd = { path: "/v1/sessions/s", body: "{", headers: { "content-type": "text/plain" } };
    expect((await call(handler, { method: "GET", ...odd })).status).toBe(200);
    expect((await call(handler, { method: "DELETE", ...odd })).status).toBe(204);
  });

  const base64 = (text: string | Uint8Array): string => Buffer.from(text).toString("base64");

  test.each([
    ["é as UTF-8, flagged as base64", base64('{"input":"é"}'), true, "é"],
    ["é as text", '{"input":"é"}', false, "é"],
    ["a mark and é, flagged as base64", base64('\ufeff{"input":"é"}'), true, "é"],
    ["escaped é", String.raw`{"input":"\u00e9"}`, false, "é"],
    ["a pair of surrogates", String.raw`{"input":"\ud83d\ude00"}`, false, "😀"],
    ["a lone surrogate", String.raw`{"input":"a\ud83d"}`, false, "a\ufffd"],
  ])("reaches the model as text: %s (H05)", async (...[, body, flagged, input]) => {
    const { handler, model } = service();
    expect((await call(handler, { ...turnWith(body), base64: flagged })).status).toBe(200);
    expect(model.calls[0]?.messages.at(-1)?.content).toBe(input);
  });

  test.each([
    ["plain JSON, flagged as base64", '{"input":"hi"}', true, /UTF-8|JSON/],
    ["base64 without a flag", base64('{"input":"hi"}'), false, /isn't valid JSON/],
    ["flagged, and not base64 at all", "!!!", true, /isn't valid JSON/],
    [
      "latin-1, flagged",
      base64(Uint8Array.from(Buffer.from('{"input":"é"}', "latin1"))),
      true,
      /isn't valid UTF-8/,
    ],
    [
      "UTF-16, flagged",
      base64(Uint8Array.from(Buffer.from('\ufeff{"input":"hi"}', "utf16le"))),
      true,
      /isn't valid UTF-8/,
    ],
    ["a cut character, flagged", base64(Uint8Array.of(0x7b, 0xc3)), true, /isn't valid UTF-8/],
    ["base64 twice, flagged", base64(base64('{"input":"hi"}')), true, /isn't valid JSON/],
  ])("that can't be read is a 400: %s (H05)", async (...[, body, flagged, message]) => {
    await expectRefused({ ...turnWith(body), base64: flagged }, "", message);
  });

  test.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    'application/json; charset="utf-8"',
    "application/json;charset=utf8",
    " application/json ; ",
    "application/vnd.acme.turn+json",
    "application/problem+json; charset=utf-8",
  ])("may be of the type %j (H05)", async (type) => {
    const { handler } = service();
    expect((await call(handler, turnWith({ input: "hi" }, { "CONTENT-TYPE": type }))).status).toBe(
      200,
    );
  });

  test.each([
    "",
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "application/json5",
    "application/json, application/json",
    "application/json; charset=latin-1",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "json",
    `application/json;${" ".repeat(8000)}x`,
  ])("can't be of the type %j (H05)", async (type) => {
    const { handler, model } = service();
    for (const request of [
      turnWith({ input: "hi" }, { "Content-Type": type }),
      createWith({}, { "content-type": type }),
      patch({ metadata: {} }, { "content-type": type }),
      fork({}, { "content-type": type }),
      cancel("k", {}, { "content-type": type }),
    ]) {
      const refused = await call(handler, request);
      expect(refused).toMatchObject({ status: 415, json: { code: "unsupported_media_type" } });
      expect(refused.json["detail"]).toContain("application/json");
    }
    expect(model.calls).toHaveLength(0);
  });

  test("is at most 5 MB, counted as bytes", async () => {
    const { handler, model } = service();
    const fits = `{"input":"${"é".repeat(2_600_000)}"}`;
    const exceeds = `{"input":"${"é".repeat(2_621_440)}"}`;
    expect(await call(handler, turnWith(fits))).toMatchObject({
      status: 413,
      json: { detail: expect.stringContaining("input") },
    });
    for (const request of [
      turnWith(exceeds),
      { ...turnWith(base64(exceeds)), base64: true },
      createWith(exceeds),
      patch(exceeds),
      fork(exceeds),
      cancel("k", exceeds),
    ]) {
      const refused = await call(handler, request);
      expect(refused).toMatchObject({ status: 413, json: { code: "too_large" } });
      expect(refused.json["detail"]).toBe("the body is 5242892 bytes; at most 5242880 are taken");
    }
    expect(model.calls).toHaveLength(0);
  });

  test("has an input of at most what is configured, counted as bytes", async () => {
    const { handler } = service({ maxInputBytes: 10 });
    expect((await call(handler, turnWith({ input: "é".repeat(5) }))).status).toBe(200);
    const refused = await call(handler, turnWith({ input: `${"é".repeat(5)}x` }));
    expect(refused).toMatchObject({ status: 413, json: { code: "too_large" } });
    expect(refused.json["detail"]).toBe("the input is 11 bytes; at most 10 are taken");
  });
});
