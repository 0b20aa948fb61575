import type { Message } from "../session/message.ts";

/** An id that is missing or met before is replaced: results, approvals and repairs go by it. */
export const idsBeside = (asked: readonly Message[]): ((id: string) => string) => {
  const taken = new Set(asked.flatMap(({ toolCalls }) => toolCalls).map(({ id }) => id));
  return (given) => {
    let id = given;
    for (let n = taken.size + 1; id.trim() === "" || taken.has(id); n++) id = `call_${n}`;
    taken.add(id);
    return id;
  };
};
