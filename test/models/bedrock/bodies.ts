/** Replies as Converse puts them: one JSON, or the events of a stream. */
import type { WireReply } from "../wire.ts";
import type { Frame } from "./frames.ts";

export const replyBody = (reply: WireReply): string => {
  const { text = "", reasoning, calls = [] } = reply;
  const inputs = calls.map(({ arguments: given }) =>
    isJson(given) ? given : JSON.stringify(given),
  );
  const content: object[] = [
    ...(reasoning ? [{ reasoningContent: { reasoningText: reasoning } }] : []),
    ...(text === "" ? [] : [{ text }]),
    ...calls.map(({ id, name }, at) => ({ toolUse: { toolUseId: id, name, input: slot(at) } })),
  ];
  const body = {
    metrics: { latencyMs: 42 },
    output: { message: { content, role: "assistant" } },
    stopReason: stopReasonOf(reply),
    usage: usageOf(reply),
  };
  // The letters of the arguments go out as they are: 1.0 as 1.0.
  return inputs.reduce(
    (json, input, at) => json.replace(JSON.stringify(slot(at)), () => input),
    JSON.stringify(body),
  );
};

const slot = (at: number): string => `the arguments of call ${at}`;

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

export interface Events {
  readonly told: readonly Frame[];
  /** Which says why the model stopped: the protocol's end mark. */
  readonly last: Frame;
  readonly behind: readonly Frame[];
}

export const replyEvents = (reply: WireReply): Events => {
  const { text = "", reasoning, calls = [] } = reply;
  const blocks: Block[] = [
    ...(reasoning
      ? [
          {
            deltas: [
              ...piecesOf(reasoning.text).map((piece) => ({ reasoningContent: { text: piece } })),
              { reasoningContent: { signature: reasoning.signature } },
            ],
          },
        ]
      : []),
    ...(text === "" ? [] : [{ deltas: piecesOf(text).map((piece) => ({ text: piece })) }]),
    ...calls.map(({ id, name, arguments: given }) => ({
      start: { toolUse: { toolUseId: id, name } },
      deltas: piecesOf(given).map((piece) => ({ toolUse: { input: piece } })),
    })),
  ];
  return {
    told: [event("messageStart", { role: "assistant" }), ...blocks.flatMap(blockEvents)],
    last: event("messageStop", { stopReason: stopReasonOf(reply) }),
    behind: [event("metadata", { usage: usageOf(reply), metrics: { latencyMs: 42 } })],
  };
};

export interface Block {
  /** Text and reasoning have none. */
  readonly start?: object;
  readonly deltas: readonly object[];
}

export const blockEvents = ({ start, deltas }: Block, contentBlockIndex: number): Frame[] => [
  ...(start ? [event("contentBlockStart", { contentBlockIndex, start })] : []),
  ...deltas.map((delta) => event("contentBlockDelta", { contentBlockIndex, delta })),
  event("contentBlockStop", { contentBlockIndex }),
];

/** Events are padded, so that their size doesn't give their text away. */
export const event = (type: string, payload: object): Frame => ({
  type,
  payload: { ...payload, p: "abcdefghijkl" },
});

const usageOf = ({ usage = { inputTokens: 1, outputTokens: 1 } }: WireReply) => ({
  ...usage,
  totalTokens: usage.inputTokens + usage.outputTokens,
});

const stopReasonOf = ({ finish, calls = [] }: WireReply): string =>
  STOP_REASONS[finish ?? (calls.length > 0 ? "tools" : "stop")];

const STOP_REASONS = { stop: "end_turn", tools: "tool_use", length: "max_tokens" };

/** At least two where there is more than one character. */
const piecesOf = (text: string): string[] => {
  const characters = [...text];
  const size = Math.max(1, Math.min(6, Math.ceil(characters.length / 2)));
  return Array.from({ length: Math.ceil(characters.length / size) }, (_, at) =>
    characters.slice(at * size, (at + 1) * size).join(""),
  );
};
