/**
 * Bundles the functions, one self-contained `.mjs` each: nothing is left to be found in a node_modules folder, so
 * what was tested is what runs.
 */
import { globSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";

/** `startBytes` are loaded with the function, `laterBytes` when something asks for them. */
export type Bundle = { name: string; startBytes: number; laterBytes: number; mapBytes: number };

/**
 * A cold start pays for each byte that is loaded with the function, so a bundle passes its limits knowingly or not at
 * all. What is loaded later is mostly one provider's, of which a deployment uses one or none.
 */
const limits: Readonly<Record<string, Limits>> = {
  cleanup: { startBytes: 215_000, laterBytes: 55_000 },
  http: { startBytes: 370_000, laterBytes: 710_000 },
};

type Limits = Pick<Bundle, "startBytes" | "laterBytes">;

export async function buildFunctions(folders: Folders): Promise<Bundle[]> {
  rmSync(folders.outdir, { recursive: true, force: true });
  const entries = await handlers(folders.root);
  return Promise.all(entries.map((entry) => bundle(entry, folders)));
}

type Folders = { root: string; outdir: string };

/** The files that are functions: those that export `handler`. */
async function handlers(root: string): Promise<string[]> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: globSync("functions/*.ts", { cwd: root }).toSorted(),
    outdir: "unwritten",
    write: false,
    metafile: true,
  });
  return Object.values(metafile.outputs).flatMap(({ entryPoint, exports }) =>
    entryPoint !== undefined && exports.includes("handler") ? [entryPoint] : [],
  );
}

async function bundle(entry: string, { root, outdir }: Folders): Promise<Bundle> {
  const name = basename(entry, ".ts");
  const { metafile } = await build({
    ...options,
    absWorkingDir: root,
    entryPoints: [entry],
    outdir,
    // Chunks lie in a folder of their function's name, so that each function is packaged alone.
    chunkNames: `${name}/[name]-[hash]`,
    metafile: true,
  });
  return { name, ...measure(entry, metafile.outputs) };
}

/**
 * Lambda hands a function its credentials in environment variables. The SDK's default provider would bring six more
 * places to look (profiles, SSO, instance metadata, …) into every bundle and cold start.
 */
const environmentCredentials: Plugin = {
  name: "environment-credentials",
  setup(bundler) {
    const filter = /[\\/]@aws-sdk[\\/]credential-provider-node[\\/].*index\.js$/;
    bundler.onLoad({ filter }, ({ path }) => ({
      contents: `export { fromEnv as defaultProvider } from "@aws-sdk/credential-provider-env";`,
      resolveDir: dirname(path),
    }));
  },
};

const options: BuildOptions = {
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  target: "node24",
  mainFields: ["module", "main"],
  // Linked, so that stack traces name lines of the sources; without the sources' text, which nothing needs.
  sourcemap: "linked",
  sourcesContent: false,
  logLevel: "warning",
  plugins: [environmentCredentials],
};

function measure(entry: string, outputs: Metafile["outputs"]): Omit<Bundle, "name"> {
  const paths = Object.keys(outputs);
  const start = new Set(paths.filter((path) => outputs[path]?.entryPoint === entry));
  for (const path of start) {
    for (const each of outputs[path]?.imports ?? []) {
      if (each.kind === "import-statement" && !each.external) start.add(each.path);
    }
  }
  const bytes = (wanted: (path: string) => boolean): number =>
    paths.filter(wanted).reduce((sum, path) => sum + (outputs[path]?.bytes ?? 0), 0);
  return {
    startBytes: bytes((path) => start.has(path)),
    laterBytes: bytes((path) => path.endsWith(".mjs") && !start.has(path)),
    mapBytes: bytes((path) => path.endsWith(".map")),
  };
}

if (process.argv[1] === import.meta.filename) {
  const root = join(import.meta.dirname, "..");
  const bundles = await buildFunctions({ root, outdir: join(root, "dist") });
  console.table(bundles);
  for (const bundle of bundles) {
    for (const part of ["startBytes", "laterBytes"] as const) {
      const limit = limits[bundle.name]?.[part] ?? Number.POSITIVE_INFINITY;
      if (bundle[part] <= limit) continue;
      console.error(`${bundle.name} has ${bundle[part]} ${part}, over its limit of ${limit}.`);
      process.exitCode = 1;
    }
  }
}
