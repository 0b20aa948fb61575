import { type Message, type ToolCall, toolMessage } from "../session/message.ts";

/**
 * What the model is shown of a history: every tool call has exactly one result right behind it, in
 * call order, and no result stands without its call. Providers refuse anything else, and one such
 * message would block a session for good. The stored history is not touched.
 */
export const modelView = (messages: readonly Message[]): Message[] => {
  const view: Message[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++];
    if (!message || message.role === "tool") continue;
    view.push(message);
    if (message.toolCalls.length === 0) continue;
    const results: Message[] = [];
    for (let next = messages[at]; next?.role === "tool"; next = messages[++at]) results.push(next);
    view.push(...message.toolCalls.map((call) => resultOf(call, results)));
  }
  return view;
};

/** Taken out of `results`: a model may give two calls the same id, and each has its own result. */
const resultOf = (call: ToolCall, results: Message[]): Message => {
  const at = results.findIndex(({ toolCallId }) => toolCallId === call.id);
  const [result] = at < 0 ? [] : results.splice(at, 1);
  return (
    result ??
    toolMessage(call.id, "error: interrupted before a result was recorded; the call may have run")
  );
};
