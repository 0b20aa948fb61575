import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Row } from "../../bench/measure.ts";
import { meter } from "../../bench/meter.ts";
import { oneturnRows } from "../../bench/oneturn.ts";
import { referenceRows } from "../../bench/reference-rows.ts";
import { dynamoEngines, freshTable } from "../support/dynamodb.ts";

/** DynamoDB Local where there is Java. */
const [engine] = dynamoEngines().slice(-1);

describe(`the benchmark on ${engine?.name}`, () => {
  const benchOn = async (turns: number[]) => {
    if (!engine) throw new Error("there is no engine");
    const { client, tableName } = await freshTable(engine.endpoint);
    return { meter: meter(engine.endpoint), client, tableName, turns, cpuRuns: 1 };
  };

  test("a turn costs the same at any length, warm, and one Query more, cold", async () => {
    const rows = await Array.fromAsync(oneturnRows(await benchOn([1, 20, 40])));
    const [first, ...later] = rows.filter(
      ({ system, process }) => system === "oneturn" && process === "warm",
    );
    expect(first).toMatchObject({ turn: 1, requests: 2, roundTrips: 2, readUnits: 0 });
    expect(later.map(({ turn }) => turn)).toEqual([20, 40]);
    for (const row of later) {
      expect(row).toMatchObject({ roundTrips: 2, readUnits: 0 });
      expect(row.requests).toBeLessThanOrEqual(2.5);
      expect(row.writeUnits).toBeLessThanOrEqual(8);
    }
    const cold = rows.filter(({ system, process }) => system === "oneturn" && process === "cold");
    expect(cold.map(({ roundTrips }) => roundTrips)).toEqual([2, 3, 3]);
    const [, , windowed] = rows.filter(
      ({ system, process }) => system !== "oneturn" && process === "cold",
    );
    expect(windowed?.readUnits).toBeGreaterThan(0);
    expect(windowed?.readUnits).toBeLessThan(cold[2]?.readUnits ?? 0);
  });

  test("the references read and write the conversation as they say", async () => {
    const rows = await Array.fromAsync(referenceRows(await benchOn([2, 300])));
    const of = (system: string) =>
      rows.filter((row) => row.system === system && row.process === "cold");
    expect(rows.every(({ roundTrips }) => roundTrips === null || roundTrips >= 2)).toBe(true);

    const [small, none] = of("whole snapshot, conditional put");
    expect(small).toMatchObject({ turn: 2, requests: 2, roundTrips: 2 });
    expect(none).toMatchObject({ turn: 300, requests: null, writeUnits: null, cpuMs: null });

    const units = (system: string, field: "writeUnits" | "readUnits") =>
      of(system).map((row) => Math.round(row[field] ?? 0));
    expect(units("item a turn", "writeUnits")).toEqual([3, 3]);
    expect(units("item a turn", "readUnits")[1]).toBeGreaterThan(150);
    expect(units("gzip snapshot", "writeUnits")[1]).toBeGreaterThan(150);
  });
});

describe("npm run bench", () => {
  const bench = (args: string[], env: NodeJS.ProcessEnv = process.env) =>
    spawnSync(process.execPath, [join(import.meta.dirname, "../../bench/bench.ts"), ...args], {
      env,
      encoding: "utf8",
    });

  test("says so where there is no Java, and fails", () => {
    const { status, stderr, stdout } = bench([], { PATH: "" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/Java 17/);
    expect(stdout).toBe("");
  });

  test.each(["0", "1,x", "1.5", ""])("refuses the turns %j", (turns) => {
    const { status, stderr } = bench([`--turns=${turns}`]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^--turns takes/);
  });

  test.runIf(dynamoEngines().length > 1)("prints one JSON line a row", () => {
    const { status, stdout } = bench(["--turns", "2", "--json"]);
    expect(status).toBe(0);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line): Row => JSON.parse(line) as Row);
    expect(new Set(rows.map(({ system, process }) => `${system}, ${process}`)).size).toBe(10);
    expect(rows[0]).toEqual({
      system: "oneturn",
      process: "cold",
      turn: 2,
      requests: 2,
      roundTrips: expect.any(Number),
      writeUnits: expect.any(Number),
      readUnits: expect.any(Number),
      bytes: expect.any(Number),
      cpuMs: expect.any(Number),
    });
  });
});
