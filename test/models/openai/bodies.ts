/** Replies as OpenAI's chat completions put them: one JSON, or a stream of events. */
import type { WireReply } from "../wire.ts";

export const replyBody = (reply: WireReply): string =>
  JSON.stringify({
    ...head("chat.completion"),
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: reply.text ?? null,
          refusal: null,
          ...(reply.reasoning ? { reasoning_content: reply.reasoning.text } : {}),
          ...(reply.calls ? { tool_calls: callsOf(reply) } : {}),
        },
        logprobs: null,
        finish_reason: finishOf(reply),
      },
    ],
    usage: usageOf(reply),
  });

export interface Events {
  readonly told: readonly string[];
  /** Which says why the model stopped: the protocol's end mark. */
  readonly last: string;
  readonly behind: readonly string[];
}

export const replyEvents = (reply: WireReply, wantsUsage: boolean): Events => {
  const { text = "", reasoning, calls = [] } = reply;
  const deltas: object[] = [
    { role: "assistant", content: calls.length > 0 && text === "" ? null : "" },
    ...piecesOf(reasoning?.text ?? "").map((piece) => ({ reasoning_content: piece })),
    ...piecesOf(text).map((piece) => ({ content: piece })),
    ...callsOf(reply).flatMap(({ function: { name, arguments: given }, ...call }, index) => [
      { tool_calls: [{ index, ...call, function: { name, arguments: "" } }] },
      ...piecesOf(given).map((piece) => ({
        tool_calls: [{ index, function: { arguments: piece } }],
      })),
    ]),
  ];
  return {
    told: deltas.map((delta) => chunk([{ index: 0, delta, finish_reason: null }])),
    last: chunk([{ index: 0, delta: {}, finish_reason: finishOf(reply) }]),
    behind: [...(wantsUsage ? [chunk([], usageOf(reply))] : []), event("[DONE]")],
  };
};

export const refusalBody = (status: number, message: string): string => {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  const error =
    status === 429
      ? { message, type: "requests", param: null, code: "rate_limit_exceeded" }
      : { message, type, param: null, code: status === 401 ? "invalid_api_key" : null };
  return JSON.stringify({ error });
};

export const event = (data: string): string => `data: ${data}\n\n`;

const chunk = (choices: readonly object[], usage: object | null = null): string =>
  event(JSON.stringify({ ...head("chat.completion.chunk"), choices, usage }));

const head = (object: string) => ({
  id: "chatcmpl-1",
  object,
  created: 1_764_547_200,
  model: "tiny",
});

/** A signature goes with the call that the reasoning led to, as Gemini's endpoint does it. */
const callsOf = ({ calls = [], reasoning }: WireReply) =>
  calls.map(({ id, name, arguments: given }, index) => ({
    ...(id === undefined ? {} : { id }),
    type: "function",
    function: { name, arguments: given },
    ...(reasoning && index === 0
      ? { extra_content: { google: { thought_signature: reasoning.signature } } }
      : {}),
  }));

/** Nothing is cut inside a character. */
const piecesOf = (text: string): string[] => text.match(/.{1,3}/gsu) ?? [];

const finishOf = ({ finish, calls }: WireReply): string => {
  if (finish === "tools" || (!finish && calls)) return "tool_calls";
  return finish ?? "stop";
};

const usageOf = ({ usage = { inputTokens: 1, outputTokens: 1 } }: WireReply) => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
});
