import { availableParallelism } from "node:os";
import { describe, expect, inject, test } from "vitest";
import { dynamoClient } from "../support/dynamodb.ts";
import { engineOn, runOn, sdkEngine, simulatedEngine } from "./engines.ts";
import { MUTANTS } from "./mutants.ts";
import { type Job, runJobs } from "./pool.ts";
import { REQUIRED } from "./required.ts";
import { simulate } from "./simulate.ts";
import { smallestStory } from "./tell.ts";

const RUNS = 20_000;
const MINUTES = 60_000;

test(`${RUNS} runs keep the protocol, and come through each of its paths`, {
  timeout: 10 * MINUTES,
}, async () => {
  const seen = new Set<string>();
  let broken: number | undefined;
  await runJobs(jobs(RUNS), (_job, done) => {
    for (const what of Object.keys(done.seen)) seen.add(what);
    broken = done.broken?.seed;
    return done.broken ? "stop" : "go on";
  });
  expect(broken === undefined ? "" : await smallestStory({ seed: broken })).toBe("");
  expect(REQUIRED.filter((what) => !seen.has(what))).toEqual([]);
});

function* jobs(runs: number): Iterable<Job> {
  const size = Math.ceil(runs / availableParallelism() / 20);
  for (let from = 0; from < runs; from += size) yield { from, runs: Math.min(size, runs - from) };
}

test("a run is its choices: they give it again", async () => {
  for (let seed = 0; seed < 20; seed++) {
    const { choices, trace } = await simulate({ seed });
    expect((await simulate({ choices })).trace).toEqual(trace);
  }
});

test("what breaks the protocol is found, and told as a short story", {
  timeout: MINUTES,
}, async () => {
  const mutant = MUTANTS.find(({ name }) => name === "intent before effect");
  if (!mutant) throw new Error("there is no such mutant");
  let seed = 0;
  while ((await simulate({ seed, mutant })).violations.length === 0) seed++;
  const story = await smallestStory({ seed, mutant });
  expect(story).toMatch(/^BROKEN: .* before the call was kept/);
  expect(story.split("\n").length).toBeLessThan(60);
});

describe("a seed gives the same run", () => {
  const seeds = Array.from({ length: 60 }, (_, seed) => seed);

  test("through the SDK's client", { timeout: 2 * MINUTES }, async () => {
    for (const seed of seeds) {
      expect(await runOn(sdkEngine, seed)).toEqual(await runOn(simulatedEngine, seed));
    }
  });

  const local = inject("dynamodbLocal");

  test.skipIf(local === null)("on DynamoDB Local", { timeout: 5 * MINUTES }, async () => {
    const engine = engineOn(dynamoClient(local ?? ""));
    for (const seed of seeds) {
      expect(await runOn(engine, seed)).toEqual(await runOn(simulatedEngine, seed));
    }
  });
});
