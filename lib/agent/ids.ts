import type { Message } from "../session/message.ts";

/**
 * The id, or where it is blank or used one like it that isn't; it is used from then on. A result
 * names its call by id, and providers take each only once.
 */
export const unusedId = (used: Set<string>, id: string): string => {
  const base = id.trim() === "" ? "call" : id;
  let own = base;
  for (let n = 2; used.has(own); n++) own = `${base}_${n}`;
  used.add(own);
  return own;
};

/** The ids of these messages' calls. */
export const idsOf = (messages: readonly Message[]): Set<string> =>
  new Set(messages.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id)));
