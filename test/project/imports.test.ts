import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readSource, readSources, violations } from "./imports.ts";

const breaks = (path: string, text: string): string[] => violations([readSource(path, text)]);

describe("the project's sources", () => {
  const sources = readSources(join(import.meta.dirname, "../.."));

  test("keep to the import directions, have no cycles, and read the environment at the edges only", () => {
    expect(violations(sources)).toEqual([]);
  });

  test("are really read", () => {
    const session = sources.find(({ path }) => path === "lib/session/session.ts");
    expect(session?.imports).toContainEqual({
      from: "lib/session/session.ts",
      to: "lib/session/message.ts",
      kind: "file",
    });
  });
});

describe("an import is refused", () => {
  test.for([
    ["lib/session/a.ts", "../agent/b.ts", "lib/agent/b.ts"],
    ["lib/session/a.ts", "node:crypto", "node:crypto"],
    ["lib/session/a.ts", "zod", "zod"],
    ["lib/agent/a.ts", "../turns/b.ts", "lib/turns/b.ts"],
    ["lib/agent/a.ts", "../store/store.ts", "lib/store/store.ts"],
    ["lib/agent/a.ts", "zod", "zod"],
    ["lib/turns/a.ts", "../store/dynamodb/b.ts", "lib/store/dynamodb/b.ts"],
    ["lib/turns/a.ts", "../store/memory/b.ts", "lib/store/memory/b.ts"],
    ["lib/turns/a.ts", "../http/b.ts", "lib/http/b.ts"],
    ["lib/turns/a.ts", "../models/b.ts", "lib/models/b.ts"],
    ["lib/store/store.ts", "../turns/b.ts", "lib/turns/b.ts"],
    ["lib/store/dynamodb/a.ts", "../../agent/b.ts", "lib/agent/b.ts"],
    ["lib/store/dynamodb/a.ts", "../memory/b.ts", "lib/store/memory/b.ts"],
    ["lib/store/memory/a.ts", "../../turns/b.ts", "lib/turns/b.ts"],
    ["lib/store/memory/a.ts", "@aws-sdk/lib-dynamodb", "@aws-sdk/lib-dynamodb"],
    ["lib/models/a.ts", "../turns/b.ts", "lib/turns/b.ts"],
    ["lib/http/a.ts", "../store/dynamodb/b.ts", "lib/store/dynamodb/b.ts"],
    ["lib/http/a.ts", "../../functions/b.ts", "functions/b.ts"],
    ["lib/http/a.ts", "node:fs/promises", "node:fs/promises"],
    ["lib/http/a.ts", "fs", "node:fs"],
    ["lib/models/a.ts", "node:child_process", "node:child_process"],
    ["lib/index.ts", "../dev/b.ts", "dev/b.ts"],
    ["lib/elsewhere/a.ts", "../session/b.ts", "lib/session/b.ts"],
    ["functions/a.ts", "../dev/b.ts", "dev/b.ts"],
    ["dev/a.ts", "../test/b.ts", "test/b.ts"],
  ] as const)("from %s to %s", ([path, module, to]) => {
    expect(breaks(path, `import "${module}";`)).toEqual([`${path} must not import ${to}`]);
  });
});

describe("an import is allowed", () => {
  test.for([
    ["lib/session/a.ts", "./b.ts"],
    ["lib/agent/a.ts", "../session/b.ts"],
    ["lib/agent/a.ts", "@standard-schema/spec"],
    ["lib/turns/a.ts", "../store/store.ts"],
    ["lib/store/dynamodb/a.ts", "../../session/b.ts"],
    ["lib/store/dynamodb/a.ts", "@aws-sdk/client-dynamodb"],
    ["lib/http/a.ts", "../turns/b.ts"],
    ["lib/index.ts", "./store/dynamodb/b.ts"],
    ["functions/a.ts", "../lib/index.ts"],
    ["dev/a.ts", "../functions/b.ts"],
    ["dev/a.ts", "node:fs"],
  ] as const)("from %s to %s", ([path, module]) => {
    expect(breaks(path, `import "${module}";`)).toEqual([]);
  });
});

describe("a module counts as imported", () => {
  test.for([
    `import { b } from "../agent/b.ts";`,
    `import type { B } from "../agent/b.ts";`,
    `export { b } from "../agent/b.ts";`,
    `export type { B } from "../agent/b.ts";`,
    `export * from "../agent/b.ts";`,
    `const later = async () => await import("../agent/b.ts");`,
    `type B = import("../agent/b.ts").B;`,
    `import b = require("../agent/b.ts");`,
    `const b = require("../agent/b.ts");`,
  ])("in %s", (text) => {
    expect(breaks("lib/session/a.ts", text)).toEqual([
      "lib/session/a.ts must not import lib/agent/b.ts",
    ]);
  });

  test("even where its name is computed", () => {
    expect(breaks("lib/session/a.ts", "await import(name);")).toEqual([
      "lib/session/a.ts must not import a computed name",
    ]);
  });
});

describe("reading the environment", () => {
  const ways = [
    "process.env.X;",
    `globalThis.process["env"];`,
    "const { env } = process;",
    `import { env } from "node:process";`,
  ];

  test.for(ways)("is refused in lib: %s", (text) => {
    expect(breaks("lib/http/a.ts", text)).toContain("lib/http/a.ts must not read the environment");
  });

  test.for(ways)("is allowed in functions: %s", (text) => {
    expect(breaks("functions/a.ts", text)).toEqual([]);
  });
});

test("an import cycle is named once, by its files in order", () => {
  const sources = [
    readSource("lib/session/a.ts", `import "./b.ts";`),
    readSource("lib/session/b.ts", `import type { C } from "./c.ts";`),
    readSource("lib/session/c.ts", `import "./a.ts"; import "./d.ts";`),
    readSource("lib/session/d.ts", ""),
  ];
  expect(violations(sources)).toEqual([
    "lib/session/a.ts -> lib/session/b.ts -> lib/session/c.ts -> lib/session/a.ts is an import cycle",
  ]);
});
