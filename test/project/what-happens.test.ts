import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("each row of What happens when… names a test that there is, or a path of the simulation", () => {
  const sources = readdirSync("test", { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.endsWith("what-happens.test.ts"))
    .map((name) => readFileSync(`test/${name}`, "utf8"))
    .join("\n");
  const rows = readFileSync("WHAT-HAPPENS.md", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (what happens|it dies) /.test(line));
  expect(rows.length).toBeGreaterThan(20);
  const names = rows.map((row) => /"([^"]+)"[^"|]*\|$/.exec(row)?.[1] ?? row);
  expect(names.filter((name) => !sources.includes(name))).toEqual([]);
});
