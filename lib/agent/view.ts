import {
  isChecked,
  type Message,
  type ToolCall,
  toolMessage,
  withoutProviderData,
} from "../session/message.ts";
import { unusedId } from "./ids.ts";
import { INTERRUPTED } from "./results.ts";
import type { Summarize } from "./summary.ts";

/** What the model is shown of the history before the present turn: the newest turns that fit both bounds. */
export interface Window {
  /** So many turns at most. Older ones aren't even read from the store. */
  readonly turns?: number;
  /** So many UTF-8 bytes of text and arguments at most; English has about four to a token. */
  readonly bytes?: number;
  /**
   * Stands for what `turns` leaves out, behind the system prompt. It is made once in so many turns, so
   * between `turns` and twice as many are shown.
   */
  readonly summarize?: Summarize;
}

/** How many turns are shown at most. */
export const shownTurns = ({ turns, summarize }: Window): number | undefined =>
  turns !== undefined && summarize ? 2 * turns : turns;

export interface ViewOptions {
  readonly window?: Window | undefined;
  /** Whose data is shown. */
  readonly provider?: string | undefined;
}

/**
 * What the model is shown of a history: every tool call has exactly one result right behind it, in
 * call order, no result stands without its call, and no two calls have one id. Providers refuse
 * anything else, and one such message would block a session for good. The stored history is not
 * touched.
 */
export const modelView = (
  all: readonly Message[],
  { window = {}, provider }: ViewOptions = {},
): Message[] => {
  const messages = windowed(all, window);
  const ids = new Set<string>();
  const view: Message[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++];
    if (!message || message.role === "tool") continue;
    const { providerData } = message;
    const isStrange = providerData !== undefined && providerData.provider !== provider;
    const shown = isStrange ? withoutProviderData(message) : copyOf(message);
    if (message.toolCalls.length === 0) {
      view.push(shown);
      continue;
    }
    const results: Message[] = [];
    for (let next = messages[at]; next?.role === "tool"; next = messages[++at]) results.push(next);
    const answers = message.toolCalls.map((call) => copyOf(resultOf(call, results)));
    const own = message.toolCalls.map(({ id }) => unusedId(ids, id));
    const isKept = message.toolCalls.every(({ id }, index) => id === own[index]);
    view.push(...(isKept ? [shown, ...answers] : renamed(shown, answers, own)));
  }
  return view;
};

/** A window begins with a user message, so that it never cuts between a call and its result. */
const windowed = (messages: readonly Message[], window: Window): readonly Message[] => {
  const turns = shownTurns(window) ?? Number.POSITIVE_INFINITY;
  const { bytes = Number.POSITIVE_INFINITY } = window;
  if (turns === Number.POSITIVE_INFINITY && bytes === Number.POSITIVE_INFINITY) return messages;
  const starts = messages.flatMap(({ role }, at) => (role === "user" ? [at] : []));
  const present = Math.max(0, starts.length - 1);
  let first = present;
  for (let left = bytes; first > 0 && present - first < turns; first--) {
    const older = messages.slice(starts[first - 1], starts[first]);
    left -= older.reduce((sum, message) => sum + sizeOf(message), 0);
    if (left < 0) break;
  }
  // What stands before the first user message, a greeting, is one more turn.
  if (starts.length === 0 || (first === 0 && present < turns)) return messages;
  return [
    ...messages.slice(0, starts[first]).filter(({ role }) => role === "system"),
    ...messages.slice(starts[first]),
  ];
};

/** An adapter may change what it is given, and the history must not change with it: what isn't frozen is copied. */
const copyOf = (message: Message): Message =>
  isChecked(message) ? message : structuredClone(message);

const sizeOf = ({ content, toolCalls }: Message): number =>
  toolCalls.reduce(
    (sum, call) => sum + Buffer.byteLength(JSON.stringify(call)),
    Buffer.byteLength(content),
  );

const renamed = (
  message: Message,
  results: readonly Message[],
  ids: readonly string[],
): Message[] => [
  {
    ...message,
    toolCalls: message.toolCalls.map((call, index) => ({ ...call, id: ids[index] ?? call.id })),
  },
  ...results.map((result, index) => ({
    ...result,
    toolCallId: ids[index] ?? result.toolCallId,
  })),
];

/** Taken out of `results`: a model may give two calls the same id, and each has its own result. */
const resultOf = (call: ToolCall, results: Message[]): Message => {
  const at = results.findIndex(({ toolCallId }) => toolCallId === call.id);
  const [result] = at < 0 ? [] : results.splice(at, 1);
  return result ?? toolMessage(call.id, INTERRUPTED);
};
