/** Timestamps are text: they are kept to the letter, and read only where a number is needed. */
import { invalid } from "./invalid.ts";

/** The form that Python's `datetime.isoformat` gives: six decimals, `+00:00`. */
export const formatTimestamp = (epochMs: number): string =>
  new Date(epochMs).toISOString().replace("Z", "000+00:00");

/**
 * Epoch milliseconds of an ISO 8601 date and time with a zone; parts of a millisecond are cut off.
 *
 * Read by hand since `Date.parse` takes a time without a zone for local time, and 30 February for
 * 2 March.
 *
 * @throws {InvalidInputError} for anything else
 */
export const parseTimestamp = (value: unknown, path: string): number => {
  const match = typeof value === "string" ? ISO_8601.exec(value) : null;
  if (!match) {
    throw invalid(
      path,
      "must be an ISO 8601 time with a zone, such as 2026-12-01T03:04:05.678901+00:00",
    );
  }
  const [
    ,
    year,
    month,
    day,
    hour,
    minute,
    second = "0",
    fraction = "",
    sign,
    zoneHour = "0",
    zoneMinute = "0",
  ] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  const inRange =
    date.getUTCMonth() === Number(month) - 1 &&
    date.getUTCDate() === Number(day) &&
    Number(hour) < 24 &&
    Number(minute) < 60 &&
    Number(second) < 60 &&
    Number(zoneHour) < 24 &&
    Number(zoneMinute) < 60;
  if (!inRange) throw invalid(path, "is no date and time of the calendar");
  const offsetMinutes = (sign === "-" ? -1 : 1) * (Number(zoneHour) * 60 + Number(zoneMinute));
  return (
    date.getTime() +
    (Number(hour) * 60 + Number(minute) - offsetMinutes) * 60_000 +
    Number(second) * 1000 +
    Number(fraction.slice(0, 3).padEnd(3, "0"))
  );
};

const ISO_8601 =
  /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d\d):?(\d\d))$/;
