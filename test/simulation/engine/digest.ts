import { createHash } from "node:crypto";

/** The same for documents of the same content, whatever the order of their names. */
export const digest = (content: unknown): string =>
  createHash("sha1")
    .update(JSON.stringify(canonical(content)))
    .digest("hex")
    .slice(0, 8);

const canonical = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("hex") };
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value ?? "undefined";
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, field]) => [name, canonical(field)]);
};
