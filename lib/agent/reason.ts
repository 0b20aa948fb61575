import { kindOf } from "../session/json.ts";

/** What a thrown value says for itself. Anything can be thrown, and not all of it turns into a string. */
export const reasonOf = (thrown: unknown): string => {
  if (thrown instanceof Error) return thrown.message;
  return typeof thrown === "string" ? thrown : `${kindOf(thrown)} was thrown`;
};
