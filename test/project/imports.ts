/**
 * The import directions, as data: a folder may import what its row names, and nothing else. Every way to name a
 * module counts, type imports too: a layer that knows another's types can't be moved or tested without it.
 *
 * Run as a program, it prints the imports that break a rule, and fails where there are any.
 */
import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, posix } from "node:path";
import { parseSync } from "vite";

/** One file naming one module: a file by its path from the project's root, or a package or builtin by its name. */
export type Import = { from: string; to: string; kind: "file" | "package" };

export type Source = { path: string; imports: Import[]; readsEnvironment: boolean };

type Rule = { folder: string; files: RegExp; packages: RegExp };

const none = /^(?!)/;
const anything = /^(?!node:(fs|child_process|cluster|worker_threads|repl|inspector)\b)/;

/** The first row whose folder holds a file decides. */
const rules: readonly Rule[] = [
  { folder: "lib/session/", files: /^lib\/session\//, packages: none },
  {
    folder: "lib/agent/",
    files: /^lib\/(session|agent)\//,
    packages: /^(@standard-schema\/spec|@cfworker\/json-schema|node:crypto)$/,
  },
  {
    folder: "lib/turns/",
    files: /^lib\/((session|agent|turns)\/|store\/[^/]+$)/,
    packages: /^node:crypto$/,
  },
  {
    folder: "lib/store/dynamodb/",
    files: /^lib\/(session\/|store\/([^/]+$|dynamodb\/))/,
    packages: /^(@aws-sdk\/[^/]+|node:(crypto|zlib|util))$/,
  },
  {
    folder: "lib/store/memory/",
    files: /^lib\/(session\/|store\/([^/]+$|memory\/))/,
    packages: none,
  },
  {
    folder: "lib/store/",
    files: /^lib\/(session\/|store\/[^/]+$)/,
    packages: /^node:(crypto|zlib|util)$/,
  },
  { folder: "lib/tools/", files: /^lib\/(session|agent|tools)\//, packages: anything },
  { folder: "lib/models/", files: /^lib\/(session|agent|models)\//, packages: anything },
  {
    folder: "lib/http/",
    files: /^lib\/((session|agent|turns|http)\/|store\/[^/]+$)/,
    packages: anything,
  },
  {
    folder: "lib/events/",
    files: /^lib\/((session|agent|turns|events)\/|store\/[^/]+$)/,
    packages: anything,
  },
  { folder: "lib/index.ts", files: /^lib\//, packages: none },
  { folder: "functions/", files: /^((lib|functions)\/|package\.json$)/, packages: /./ },
  { folder: "dev/", files: /^((lib|functions|dev)\/|package\.json$)/, packages: /./ },
];

export function readSources(root: string): Source[] {
  return globSync("{lib,functions,dev}/**/*.ts", { cwd: root })
    .map((path) => path.replaceAll("\\", "/"))
    .toSorted()
    .map((path) => readSource(path, readFileSync(join(root, path), "utf8")));
}

export function readSource(path: string, text: string): Source {
  const { program, errors } = parseSync(path, text);
  if (errors[0]) throw new Error(`${path} can't be parsed: ${errors[0].message}`);
  const nodes = nodesIn(program);
  const imports = nodes.flatMap(moduleNamed).map((module) => resolve(path, module));
  return {
    path,
    imports,
    readsEnvironment: nodes.some(isEnvironment) || imports.some(({ to }) => to === "node:process"),
  };
}

/** What is wrong with these sources, one sentence each. */
export function violations(sources: readonly Source[]): string[] {
  const imports = sources.flatMap((source) => source.imports);
  const wrong = imports.filter((each) => !isAllowed(each));
  const readers = sources.filter((each) => each.readsEnvironment && each.path.startsWith("lib/"));
  return [
    ...wrong.map(({ from, to }) => `${from} must not import ${to}`),
    ...readers.map(({ path }) => `${path} must not read the environment`),
    ...cycles(imports).map((cycle) => `${cycle.join(" -> ")} is an import cycle`),
  ];
}

function isAllowed({ from, to, kind }: Import): boolean {
  const rule = rules.find(({ folder }) => from.startsWith(folder));
  const allowed = kind === "file" ? rule?.files : rule?.packages;
  return allowed?.test(to) ?? false;
}

/** Each cycle once, from the file where a walk in the order of names meets it. */
function cycles(imports: readonly Import[]): string[][] {
  const next = Map.groupBy(imports, ({ from }) => from);
  const found: string[][] = [];
  const done = new Set<string>();
  const walk = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found.push([...trail.slice(trail.indexOf(path)), path]);
    if (done.has(path)) return;
    done.add(path);
    for (const { to } of next.get(path) ?? []) walk(to, [...trail, path]);
  };
  for (const path of next.keys()) walk(path, []);
  return found;
}

type Node = { [field: string]: unknown; type: string };

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const nodesIn = (value: unknown): Node[] => {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  return isNode(value) ? [value, ...Object.values(value).flatMap(nodesIn)] : [];
};

function moduleNamed(node: Node): string[] {
  switch (node.type) {
    case "ImportDeclaration":
    case "ExportAllDeclaration":
    case "ExportNamedDeclaration":
    case "ImportExpression":
    case "TSImportType":
      return node["source"] ? [literal(node["source"])] : [];
    case "TSExternalModuleReference":
      return [literal(node["expression"])];
    case "CallExpression":
      return isNamed(node["callee"], "require") && Array.isArray(node["arguments"])
        ? [literal(node["arguments"][0])]
        : [];
    default:
      return [];
  }
}

const literal = (node: unknown): string =>
  isNode(node) && typeof node["value"] === "string" ? node["value"] : "a computed name";

const isNamed = (node: unknown, name: string): boolean =>
  isNode(node) && (node["name"] === name || node["value"] === name);

/** `process.env`, however it is reached: `globalThis.process["env"]`, `const { env } = process`. */
function isEnvironment(node: Node): boolean {
  if (node.type === "MemberExpression") {
    return isNamed(node["property"], "env") && isProcess(node["object"]);
  }
  return node.type === "VariableDeclarator" && isProcess(node["init"]);
}

const isProcess = (node: unknown): boolean =>
  isNamed(node, "process") || (isNode(node) && isNamed(node["property"], "process"));

function resolve(from: string, module: string): Import {
  if (module.startsWith(".")) return { from, to: posix.join(dirname(from), module), kind: "file" };
  const isBare = isBuiltin(module) && !module.startsWith("node:");
  return { from, to: isBare ? `node:${module}` : module, kind: "package" };
}

if (process.argv[1] === import.meta.filename) {
  const broken = violations(readSources(join(import.meta.dirname, "../..")));
  for (const sentence of broken) console.error(sentence);
  if (broken.length > 0) process.exitCode = 1;
}
