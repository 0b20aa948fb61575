import { isChecked, type Message, type ToolCall, toolMessage } from "../session/message.ts";
import { INTERRUPTED } from "./results.ts";

/**
 * What the model is shown of a history: every tool call has exactly one result right behind it, in
 * call order, and no result stands without its call. Providers refuse anything else, and one such
 * message would block a session for good. The stored history is not touched.
 *
 * @param windowTurns how many turns before the present one are shown; all of them by default
 */
export const modelView = (
  all: readonly Message[],
  windowTurns = Number.POSITIVE_INFINITY,
): Message[] => {
  const messages = windowed(all, windowTurns);
  const view: Message[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++];
    if (!message || message.role === "tool") continue;
    view.push(copyOf(message));
    if (message.toolCalls.length === 0) continue;
    const results: Message[] = [];
    for (let next = messages[at]; next?.role === "tool"; next = messages[++at]) results.push(next);
    view.push(...message.toolCalls.map((call) => copyOf(resultOf(call, results))));
  }
  return view;
};

/** A window begins with a user message, so that it never cuts between a call and its result. */
const windowed = (messages: readonly Message[], turns: number): readonly Message[] => {
  if (turns === Number.POSITIVE_INFINITY) return messages;
  const starts = messages.flatMap(({ role }, at) => (role === "user" ? [at] : []));
  const start = starts.length > turns ? starts.at(-turns - 1) : undefined;
  if (start === undefined) return messages;
  return [
    ...messages.slice(0, start).filter(({ role }) => role === "system"),
    ...messages.slice(start),
  ];
};

/** An adapter may change what it is given, and the history must not change with it: what isn't frozen is copied. */
const copyOf = (message: Message): Message =>
  isChecked(message) ? message : structuredClone(message);

/** Taken out of `results`: a model may give two calls the same id, and each has its own result. */
const resultOf = (call: ToolCall, results: Message[]): Message => {
  const at = results.findIndex(({ toolCallId }) => toolCallId === call.id);
  const [result] = at < 0 ? [] : results.splice(at, 1);
  return result ?? toolMessage(call.id, INTERRUPTED);
};
