import { afterEach, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { InvalidInputError } from "../../lib/session/invalid.ts";
import { itemsIn, type World, worldOn } from "../store/expiring.ts";

/** Long enough ago to be due by any clock, and for the table's own TTL to let it lie. */
const LONG_AGO_MS = Date.UTC(2001, 0, 1);

describe("the cleanup function", () => {
  let world: World;
  let lines: unknown[];

  beforeEach(async () => {
    world = await worldOn(inject("dynalite"), LONG_AGO_MS);
    lines = [];
    vi.spyOn(console, "log").mockImplementation((line) => void lines.push(line));
    vi.stubEnv("TABLE_NAME", world.tableName);
    vi.stubEnv("DYNAMODB_ENDPOINT", inject("dynalite"));
    vi.stubEnv("AWS_REGION", "us-east-1");
    vi.stubEnv("AWS_ACCESS_KEY_ID", "test");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "test");
    vi.resetModules();
  });

  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  /** As a new process runs it. */
  const cleanUp = async (event: object, remainingMs: () => number = () => 300_000) => {
    const { handler } = await import("../../functions/cleanup.ts");
    return handler(event, { getRemainingTimeInMillis: remainingMs });
  };

  test("deletes what has expired by now, returns the counts, and logs them as one line of JSON", async () => {
    await world.short();
    await world.long();
    const count = (await itemsIn(world)).length;
    world.clock.advance(Date.now() - LONG_AGO_MS);
    await world.short();
    const report = await cleanUp({});
    expect(report).toEqual({ sessions: 2, items: count - 2, kept: 0, failed: 0 });
    expect(lines).toEqual([JSON.stringify({ message: "cleanup", ...report, finished: true })]);
    expect(await itemsIn(world)).toHaveLength(1);
  });

  test("runs as the scheduler calls it", async () => {
    await world.short();
    const event = {
      version: "0",
      id: "a3f3c1a2-0000-4000-8000-000000000000",
      "detail-type": "Scheduled Event",
      source: "aws.scheduler",
      account: "123456789012",
      time: "2026-12-01T12:00:00Z",
      region: "eu-west-1",
      resources: ["arn:aws:scheduler:eu-west-1:123456789012:schedule/default/cleanup"],
      detail: "{}",
    };
    expect(await cleanUp(event)).toMatchObject({ sessions: 1 });
  });

  test("stops 10 s before its time is over, says so, and goes on from there when called with that", async () => {
    for (let n = 0; n < 3; n++) await world.short();
    const stopped = await cleanUp({}, () => 9_999);
    expect(stopped).toEqual({
      sessions: 0,
      items: 0,
      kept: 0,
      failed: 0,
      resume: expect.any(String),
    });
    expect(lines).toEqual([
      '{"message":"cleanup","sessions":0,"items":0,"kept":0,"failed":0,"finished":false}',
    ]);
    expect(await cleanUp({ resume: stopped.resume }, () => 10_000)).toMatchObject({ sessions: 3 });
    expect(await itemsIn(world)).toEqual([]);
  });

  test.each([7, null, "", "there", {}, []])(
    "refuses the resume point %j, and deletes nothing",
    async (resume) => {
      await world.short();
      const failure = await cleanUp({ resume }).catch((error: unknown) => error);
      expect(failure).toMatchObject({ name: InvalidInputError.name, faults: [{ path: "resume" }] });
      expect(await itemsIn(world)).toHaveLength(1);
      expect(lines).toEqual([]);
    },
  );
});
