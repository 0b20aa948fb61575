import { expect, test } from "vitest";
import { type Interval, readsOf, roundTripsOf, type Trace, writesOf } from "../../bench/trace.ts";

/** "0-1 1-2": the one from 0 to 1 ms, and the one from 1 to 2. */
const intervals = (text: string): Interval[] =>
  Array.from(text.matchAll(/(\d+)-(\d+)/g), ([, start, end]) => ({
    startMs: Number(start),
    endMs: Number(end),
  }));

const traceOf = (requests: string, thinking: string): Trace => ({
  exchanges: intervals(requests).map((it) => ({ ...it, operation: "Query", units: 1, answer: {} })),
  thinking: intervals(thinking),
  bytes: 0,
});

test.each([
  { name: "nothing", requests: "", thinking: "", roundTrips: 0 },
  { name: "one request", requests: "0-1", thinking: "", roundTrips: 1 },
  { name: "two, one after the other", requests: "0-1 1-2", thinking: "", roundTrips: 2 },
  { name: "two at once", requests: "0-5 1-3", thinking: "", roundTrips: 1 },
  { name: "a chain beside a long one", requests: "0-9 1-3 4-6", thinking: "", roundTrips: 2 },
  { name: "one within the thinking", requests: "0-1 3-4 6-7", thinking: "2-5", roundTrips: 2 },
  { name: "one that outlasts its start", requests: "0-1 1-3 6-7", thinking: "2-5", roundTrips: 2 },
  { name: "one that outlasts its end", requests: "0-1 4-6 6-7", thinking: "2-5", roundTrips: 2 },
  { name: "one that it waits for", requests: "0-1 1-2 5-6", thinking: "2-5", roundTrips: 3 },
])("round trips of $name: $roundTrips", ({ requests, thinking, roundTrips }) => {
  expect(roundTripsOf(traceOf(requests, thinking))).toBe(roundTrips);
});

test("writes and reads are counted apart", () => {
  const exchanges = Object.entries({ UpdateItem: 3, Query: 7.5, PutItem: 2, GetItem: 0.5 }).map(
    ([operation, units]) => ({ operation, units, startMs: 0, endMs: 1, answer: {} }),
  );
  const trace: Trace = { exchanges, thinking: [], bytes: 0 };
  expect(writesOf(trace)).toEqual({ requests: 2, units: 5 });
  expect(readsOf(trace)).toEqual({ requests: 2, units: 8 });
});
