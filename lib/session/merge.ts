import { isPlainObject, type JsonObject, type JsonValue } from "./json.ts";

/** A JSON merge patch (RFC 7396): null removes, objects are merged, everything else replaces. */
export const mergePatch = (target: JsonValue | undefined, patch: JsonObject): JsonObject => {
  const merged = new Map(isPlainObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, isPlainObject(value) ? mergePatch(merged.get(key), value) : value);
  }
  return Object.fromEntries(merged);
};
