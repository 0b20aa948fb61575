import { AVERAGED_TURNS, type Missing, type Row } from "./measure.ts";

/** The table's lines, in Markdown. */
export const lineOf = (row: Row | Missing): string =>
  line((column) => column.of(row).padStart(column.width));

interface Column {
  readonly title: string;
  readonly width: number;
  readonly of: (row: Row | Missing) => string;
}

const COLUMNS: readonly Column[] = [
  { title: "system", width: 31, of: ({ system }) => system.padEnd(31) },
  { title: "turn", width: 5, of: ({ turn }) => format(turn) },
  { title: "process", width: 7, of: ({ process }) => process },
  { title: "requests", width: 8, of: ({ requests }) => format(requests) },
  { title: "round trips", width: 11, of: ({ roundTrips }) => format(roundTrips) },
  { title: "write units", width: 11, of: ({ writeUnits }) => format(writeUnits) },
  { title: "read units", width: 10, of: ({ readUnits }) => format(readUnits) },
  { title: "bytes", width: 10, of: ({ bytes }) => format(bytes) },
  { title: "own CPU, ms", width: 11, of: ({ cpuMs }) => format(cpuMs) },
];

const line = (cell: (column: Column) => string): string => `| ${COLUMNS.map(cell).join(" | ")} |`;

const format = (value: number | null): string =>
  value?.toLocaleString("en", { maximumFractionDigits: 1 }) ?? "—";

export const HEADER = [
  line(({ title, width }) => (title === "system" ? title.padEnd(width) : title.padStart(width))),
  line(({ width, title }) =>
    title === "system" ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  ),
].join("\n");

export const footnote = (cpuRuns: number): string => `
A cold process has yet to see the session; a warm one ran the turns before. The references keep nothing between turns.
Write units, and the writes among the requests, are averages over the ${AVERAGED_TURNS} turns up to that one; all else is that turn's.
Round trips: the longest chain of requests that no model's thinking overlaps. Bytes: request and answer bodies, both ways.
Own CPU: restore, agent loop and commit with the table's recorded answers, and the document client's conversion of them;
not the rest of the SDK, nor the network. All threads, median of ${cpuRuns} runs.
—: an item would be larger than the 400 KB that DynamoDB takes.`;
