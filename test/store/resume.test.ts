import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import { EXPIRY_SHARDS } from "../../lib/store/dynamodb/table.ts";
import { hookedClient } from "../support/hooked.ts";
import { EXPIRY_MS, NOTHING, sweepOf } from "./expiring.ts";

describe("a resume point", () => {
  const text = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const places = (place: unknown): unknown[] => [
    place,
    ...Array.from({ length: EXPIRY_SHARDS - 1 }, () => "done"),
  ];
  const seconds = EXPIRY_MS / 1000;

  test.each([
    ["no JSON", "%%%"],
    ["empty", ""],
    ["no list", text({ length: EXPIRY_SHARDS })],
    ["of too few shards", text(["done"])],
    ["of an unknown place", text(places("middle"))],
    ["of a place that is no list", text(places({ pk: "a#b", sk: "HEAD", expires_at: 1 }))],
    ["of a place without a sort key", text(places(["a#b", 1]))],
    ["of an empty key", text(places(["", "HEAD", 1]))],
    ["of an empty sort key", text(places(["a#b", "", 1]))],
    ["of a key that is no text", text(places([7, "HEAD", 1]))],
    ["of an expiry that is no number", text(places(["a#b", "HEAD", "1"]))],
    ["of an expiry that is no whole number", text(places(["a#b", "HEAD", 1.5]))],
    ["of what hasn't expired yet", text(places(["a#b", "HEAD", seconds + 1]))],
  ])("that is %s is refused, before the table is asked for anything", async (_what, resume) => {
    const { client, requests } = hookedClient("http://127.0.0.1:1", async () => ({ Items: [] }));
    const failure = sweepOf({ client, tableName: "t" }, EXPIRY_MS, { resume });
    await expect(failure).rejects.toThrow(InvalidInputError);
    await expect(failure).rejects.toHaveProperty("faults.0.path", "resume");
    expect(requests.sent).toBe(0);
  });

  test("is taken up to the last expired second", async () => {
    const { client, requests } = hookedClient("http://127.0.0.1:1", async () => ({ Items: [] }));
    const resume = text(places(["a#b", "HEAD", seconds]));
    expect(await sweepOf({ client, tableName: "t" }, EXPIRY_MS, { resume })).toEqual(NOTHING);
    expect(requests.sent).toBe(1);
  });
});
