import type { JsonObject } from "../session/json.ts";
import type { Message } from "../session/message.ts";

/**
 * A language model, as the agent sees it.
 *
 * `complete` asks for the next assistant message. It may be called again with the same messages:
 * the caller retries whole turns, so an adapter keeps nothing between calls. It rejects where no
 * whole answer was received (never resolves with part of one), and rejects soon after `signal`
 * aborts. Whether a failed call is worth another try is the adapter's own affair, inside the call.
 */
export interface Model {
  /**
   * Names whose `providerData` this model gives and is shown, such as "bedrock:anthropic.claude-opus-5".
   * That of others is left out of what it is shown. Without a name it is shown none.
   */
  readonly provider?: string;
  complete(
    messages: readonly Message[],
    tools: readonly ToolSpec[],
    options: ModelCallOptions,
  ): Promise<ModelReply>;
}

export interface ModelCallOptions {
  readonly signal: AbortSignal;
  /**
   * Called with each piece of text as it arrives, by models that can stream. The pieces are a
   * preview: the message that `complete` resolves with is the truth. Undefined where nobody listens.
   */
  readonly onText?: ((delta: string) => void) | undefined;
  /** Called where another try begins: the pieces of text so far are void. */
  readonly onRestart?: (() => void) | undefined;
}

export interface ModelReply {
  /** An assistant message: text, tool calls, or both. */
  readonly message: Message;
  readonly usage?: Usage;
  /** Why the model stopped, in the provider's own word. */
  readonly finishReason?: string;
}

/** Tokens that the provider billed. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What a model is told of a tool. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
}
