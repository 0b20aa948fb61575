import { childPath, type InvalidInputError, invalid } from "../../session/invalid.ts";
import { isPlainObject, kindOf } from "../../session/json.ts";
import type { Item } from "./table.ts";

/** Reads the fields of a map by name and type. */
export class Fields {
  readonly #map: Item;
  readonly #path: string;

  constructor(map: unknown, path: string) {
    if (!isPlainObject(map)) throw invalid(path, `must be a map, not ${kindOf(map)}`);
    this.#map = map;
    this.#path = path;
  }

  keys(): string[] {
    return Object.keys(this.#map);
  }

  has(name: string): boolean {
    return this.#map[name] !== undefined;
  }

  value(name: string): unknown {
    return this.#map[name];
  }

  text(name: string): string {
    const value = this.#map[name];
    if (typeof value !== "string") throw this.#fault(name, "text");
    return value;
  }

  number(name: string): number {
    const value = this.#map[name];
    if (typeof value !== "number") throw this.#fault(name, "a number");
    return value;
  }

  /** One of a few. */
  word<T extends string>(name: string, known: readonly T[]): T {
    const value = this.#map[name];
    const word = known.find((it) => it === value);
    if (word === undefined) throw this.#fault(name, known.join(" or "));
    return word;
  }

  list(name: string): unknown[] {
    const values = this.#map[name];
    if (!Array.isArray(values)) throw this.#fault(name, "a list");
    return values;
  }

  numbers(name: string): number[] {
    return this.list(name).map((value) => {
      if (typeof value !== "number") throw this.#fault(name, "a list of numbers");
      return value;
    });
  }

  /** Bytes, in hex. */
  id(name: string): string {
    const value = this.#map[name];
    if (!(value instanceof Uint8Array)) throw this.#fault(name, "bytes");
    return Buffer.from(value).toString("hex");
  }

  fields(name: string): Fields {
    return new Fields(this.#map[name], childPath(this.#path, name));
  }

  #fault(name: string, wanted: string): InvalidInputError {
    return invalid(
      childPath(this.#path, name),
      `must be ${wanted}, not ${kindOf(this.#map[name])}`,
    );
  }
}
