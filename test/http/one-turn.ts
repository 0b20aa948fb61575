/** What the tests of the route of one turn share. */
import { fieldsOf } from "./talk.ts";

export const KEY = { owner: "ann", sessionId: "s" };

/** What the list of turns and the turn's own answer tell of it, put together. */
export const told = (listed: unknown, answer: unknown): Record<string, unknown> => {
  const { replayed: _, ...result } = fieldsOf(answer);
  return { ...fieldsOf(listed), ...result };
};
