import { defineConfig } from "vitest/config";
import { closingLine } from "./dev/reporter.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/global-setup.ts",
    reporters: ["default", closingLine()],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What is waited for happens; on a busy machine it takes its time.
    expect: { poll: { timeout: 10_000 } },
  },
});
