import type { Model, ModelCallOptions, ModelReply, ToolSpec } from "../../lib/agent/model.ts";
import type { Message } from "../../lib/session/message.ts";

/** What one call of the model does: reply, fail, or decide from what it is asked. */
export type ScriptedReply =
  | Message
  | ModelReply
  | Error
  | ((
      messages: readonly Message[],
      tools: readonly ToolSpec[],
      options: ModelCallOptions,
    ) => Message | ModelReply | Promise<Message | ModelReply>);

export interface ScriptedModel extends Model {
  /** What each call was asked, in order, copied when it came. */
  readonly calls: { readonly messages: readonly Message[]; readonly tools: readonly ToolSpec[] }[];
}

/** A model that gives `replies` one by one, whoever asks, and fails when they are used up. */
export const scriptedModel = (
  replies: readonly ScriptedReply[],
  provider?: string,
): ScriptedModel => {
  const calls: ScriptedModel["calls"] = [];
  return {
    ...(provider === undefined ? {} : { provider }),
    calls,
    async complete(messages, tools, options) {
      const reply = replies[calls.length];
      calls.push(structuredClone({ messages, tools }));
      if (reply === undefined) throw new Error(`the script has no reply number ${calls.length}`);
      if (reply instanceof Error) throw reply;
      const given = typeof reply === "function" ? await reply(messages, tools, options) : reply;
      return "message" in given ? given : { message: given };
    },
  };
};
