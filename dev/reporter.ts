import type { Reporter } from "vitest/node";

/**
 * The run's last line, `N passed, N failed`, for people and scripts alike. It is printed as the process exits, so
 * that nothing follows it, and it never disagrees with the exit code: whatever else went wrong (a file that did not
 * load, an unhandled error, a teardown) counts as a failure, and so does a run in which no test passed.
 */
export function closingLine(): Reporter {
  const count = { passed: 0, failed: 0, skipped: 0 };
  return {
    onInit() {
      process.once("exit", (code) => {
        if (count.failed === 0 && (code !== 0 || count.passed === 0)) count.failed = 1;
        if (count.failed > 0) process.exitCode = code || 1;
        const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
        console.log(`${count.passed} passed, ${count.failed} failed${skipped}`);
      });
    },
    onTestRunEnd(modules, unhandledErrors) {
      const tests = modules.flatMap((module) => [...module.children.allTests()]);
      const states = tests.map((test) => test.result().state);
      const groups = modules.flatMap((module) => [module, ...module.children.allSuites()]);
      const broken = groups.filter((group) => group.errors().length > 0);
      count.passed = states.filter((state) => state === "passed").length;
      count.skipped = states.filter((state) => state === "skipped").length;
      const unsuccessful = states.length - count.passed - count.skipped;
      count.failed = unsuccessful + broken.length + unhandledErrors.length;
    },
  };
}
