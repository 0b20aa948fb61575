/** The user's own agent: any module, anywhere, that imports "oneturn" and exports `agent`. */
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { Agent } from "../lib/agent/agent.ts";
import { StartError } from "./start-settings.ts";

/** From here on, "oneturn" and its subpaths are this project, whoever imports them. */
export function provideOneturn(): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier !== "oneturn" && !specifier.startsWith("oneturn/")) {
        return nextResolve(specifier, context);
      }
      // As if this file imported it: a package may import itself by name, through its exports.
      return nextResolve(specifier, { ...context, parentURL: import.meta.url });
    },
  });
}

export async function loadAgent(path: string): Promise<Agent> {
  const exported = await importModule(path);
  if (typeof exported !== "object" || exported === null || !("agent" in exported)) {
    throw new StartError(`AGENT is ${path}, which doesn't export \`agent\`.`);
  }
  const { agent } = exported;
  if (!isAgent(agent)) {
    throw new StartError(
      `AGENT is ${path}, whose \`agent\` is not an Agent: export new Agent({ … }).`,
    );
  }
  return agent;
}

async function importModule(path: string): Promise<unknown> {
  try {
    const exported: unknown = await import(pathToFileURL(path).href);
    return exported;
  } catch (error) {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const [firstLine] = reason.split("\n");
    throw new StartError(`AGENT is ${path}, which can't be imported: ${firstLine}`, {
      cause: error,
    });
  }
}

function isAgent(value: unknown): value is Agent {
  return (
    typeof value === "object" &&
    value !== null &&
    "runTurn" in value &&
    typeof value.runTurn === "function"
  );
}
