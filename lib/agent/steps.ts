import type { Message } from "../session/message.ts";
import type { Finish } from "../session/turn.ts";

/** What happened in a turn, in order. `index` counts the model's messages of the turn from 0. */
export interface Step {
  readonly index: number;
  readonly kind: "tool_call" | "final" | "error";
  /** `name -> result` of a tool call; the final text; what went wrong. */
  readonly detail: string;
}

/** Read off the turn's messages alone, so that a stored turn tells the same steps as a running one. */
export const stepsOf = (messages: readonly Message[], finish: Finish): Step[] => {
  const results = messages.filter(({ role }) => role === "tool").values();
  const replies = messages.filter(({ role }) => role === "assistant");
  const end = finish === "interrupted" ? "error" : "final";
  const steps = replies.flatMap(({ content, toolCalls }, index): Step[] =>
    toolCalls.length === 0
      ? [{ index, kind: end, detail: content }]
      : toolCalls.map(({ name }) => ({
          index,
          kind: "tool_call",
          detail: `${name} -> ${results.next().value?.content ?? ""}`,
        })),
  );
  if (finish === "max_steps") {
    steps.push({
      index: replies.length,
      kind: "error",
      detail: `no answer within ${replies.length} steps`,
    });
  }
  return steps;
};

/** The answer of a turn; "" where its steps were used up before there was one. */
export const finalText = (messages: readonly Message[], finish: Finish): string =>
  finish === "final" ? (messages.at(-1)?.content ?? "") : "";
