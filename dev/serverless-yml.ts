/** Reads single settings out of serverless.yml, and says where one is not what it should be. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** One place in the file: its value, and the path to name in an error. */
export type Setting = { value: unknown; at: string };

export const SERVERLESS_YML = join(import.meta.dirname, "..", "serverless.yml");

export function readSetting(file: string, ...path: string[]): Setting {
  // CloudFormation's own tags (!Ref, !GetAtt) are unknown to the parser, and not ours to resolve.
  const root: unknown = parse(readFileSync(file, "utf8"), { logLevel: "error" });
  return path.reduce<Setting>(field, { value: root, at: file });
}

export function field(parent: Setting, name: string): Setting {
  const at = `${parent.at}, ${name}`;
  const { value } = parent;
  if (typeof value !== "object" || value === null) return { value: undefined, at };
  return { value: new Map(Object.entries(value)).get(name), at };
}

export function items(setting: Setting): Setting[] {
  if (!Array.isArray(setting.value)) throw expected("a list", setting);
  return setting.value.map((value: unknown, index) => ({ value, at: `${setting.at}, ${index}` }));
}

export function text(setting: Setting): string {
  if (typeof setting.value !== "string") throw expected("a text", setting);
  return setting.value;
}

export function number(setting: Setting): number {
  if (typeof setting.value !== "number") throw expected("a number", setting);
  return setting.value;
}

export function oneOf<const T extends string>(setting: Setting, allowed: readonly T[]): T {
  const found = allowed.find((each) => each === setting.value);
  if (found === undefined) throw expected(`one of ${allowed.join(", ")}`, setting);
  return found;
}

function expected(what: string, { value, at }: Setting): Error {
  return new Error(`${at}: expected ${what}, found ${JSON.stringify(value) ?? "nothing"}.`);
}
