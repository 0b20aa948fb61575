import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatTimestamp, parseTimestamp } from "../../lib/session/timestamp.ts";
import { anyCreatedAt } from "./arbitraries.ts";
import { faultOf } from "./fault.ts";

const notIso = "must be an ISO 8601 time with a zone, such as 2026-12-01T03:04:05.678901+00:00";
const notInCalendar = "is no date and time of the calendar";

describe("a timestamp", () => {
  test.each([
    ["2026-01-01T00:00:00Z", 1767225600000],
    ["2026-01-01T00:00:00+00:00", 1767225600000],
    ["2026-01-01T00:00Z", 1767225600000],
    ["2026-01-01 00:00:00Z", 1767225600000],
    ["2026-01-01T05:30:00+05:30", 1767225600000],
    ["2025-12-31T20:30:00-0330", 1767225600000],
    ["2026-01-01T14:00:00+14:00", 1767225600000],
    ["2026-01-01T00:00:00.1Z", 1767225600100],
    ["2026-01-01T00:00:00.678Z", 1767225600678],
    ["2026-01-01T00:00:00.678999+00:00", 1767225600678],
    ["2026-01-01T00:00:00.999999999Z", 1767225600999],
    ["2024-02-29T23:59:59Z", 1709251199000],
    ["2000-02-29T00:00:00Z", 951782400000],
    ["1970-01-01T00:00:00Z", 0],
    ["1969-12-31T23:59:59.500Z", -500],
    ["0099-01-01T00:00:00Z", -59042995200000],
    ["9999-12-31T23:59:59Z", 253402300799000],
  ])("T01 %s is the millisecond %i, a whole number", (text, epochMs) => {
    expect(parseTimestamp(text, "created_at")).toBe(epochMs);
  });

  test.each([
    ["a time without a zone", "2026-01-01T00:00:00", notIso],
    ["a date alone", "2026-01-01", notIso],
    ["seconds", 1767225600, notIso],
    ["milliseconds", 1767225600000, notIso],
    ["seconds as text", "1767225600", notIso],
    ["a Date", new Date(0), notIso],
    ["undefined", undefined, notIso],
    ["null", null, notIso],
    ["nothing", "", notIso],
    ["a time with space around it", " 2026-01-01T00:00:00Z", notIso],
    ["a time with a line end", "2026-01-01T00:00:00Z\n", notIso],
    ["a date that Date.parse would guess", "Dec 1, 2026 GMT", notIso],
    ["two digits for the year", "26-01-01T00:00:00Z", notIso],
    ["a list of one", ["2026-01-01T00:00:00Z"], notIso],
    ["30 February", "2026-02-30T00:00:00Z", notInCalendar],
    ["29 February of a common year", "2026-02-29T00:00:00Z", notInCalendar],
    ["29 February 1900", "1900-02-29T00:00:00Z", notInCalendar],
    ["month 13", "2026-13-01T00:00:00Z", notInCalendar],
    ["month 0", "2026-00-01T00:00:00Z", notInCalendar],
    ["day 0", "2026-01-00T00:00:00Z", notInCalendar],
    ["hour 24", "2026-01-01T24:00:00Z", notInCalendar],
    ["minute 60", "2026-01-01T00:60:00Z", notInCalendar],
    ["second 60", "2026-01-01T00:00:60Z", notInCalendar],
    ["a zone of 24 hours", "2026-01-01T00:00:00+24:00", notInCalendar],
    ["a zone of 60 minutes", "2026-01-01T00:00:00+00:60", notInCalendar],
  ])("T04 %s is refused, never guessed", (_title, value, message) => {
    expect(faultOf(() => parseTimestamp(value, "created_at"))).toBe(`created_at: ${message}`);
  });

  test("is written as Python writes it: six decimals, +00:00", () => {
    expect(formatTimestamp(1767225600000)).toBe("2026-01-01T00:00:00.000000+00:00");
    expect(formatTimestamp(1767225600007)).toBe("2026-01-01T00:00:00.007000+00:00");
  });

  test("that was written is read as the same millisecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: -62135596800000, max: 253402300799999 }), (epochMs) => {
        expect(parseTimestamp(formatTimestamp(epochMs), "")).toBe(epochMs);
      }),
    );
  });

  test("is read as Date.parse reads it, where that one is sure", () => {
    fc.assert(
      fc.property(anyCreatedAt, (text) => {
        const strict = text.replace(" ", "T").replace("+1400", "+14:00").replace(".678901", ".678");
        expect(parseTimestamp(text, "")).toBe(Date.parse(strict));
      }),
    );
  });
});
