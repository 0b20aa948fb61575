/** What a provider is made to do on the wire, whatever its protocol. Each server here binds 127.0.0.1. */

export interface WireReply {
  readonly text?: string;
  readonly reasoning?: { readonly text: string; readonly signature: string };
  /** `arguments` go out as they are, whether or not they are JSON. Without an id none is sent. */
  readonly calls?: readonly {
    readonly id?: string;
    readonly name: string;
    readonly arguments: string;
  }[];
  readonly usage?: { readonly inputTokens: number; readonly outputTokens: number };
  readonly finish?: "stop" | "tools" | "length";
}

export type WireAnswer =
  | {
      readonly kind: "reply";
      readonly reply: WireReply;
      /** Bytes of body in one piece, each sent on its own. All at once by default. */
      readonly pieceBytes?: number;
      /** Before the first byte. */
      readonly delayMs?: number;
    }
  | {
      readonly kind: "refusal";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message: string;
    }
  /** The body ends too early, as if that were its end: in the middle of what is told, or right before the end mark. */
  | { readonly kind: "cut"; readonly reply: WireReply; readonly at: "middle" | "end mark" }
  /** The connection breaks: before any answer, or in the middle of it. */
  | { readonly kind: "reset"; readonly reply?: WireReply }
  /** No answer ever comes. */
  | { readonly kind: "silence" }
  /** 200, with a body of no protocol. */
  | { readonly kind: "garbage" };

/** What a request asked for, in no provider's words. */
export interface WireRequest {
  readonly streamed: boolean;
  readonly system: string;
  readonly messages: readonly WireMessage[];
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly parameters: unknown;
  }[];
  /** Whether the client broke the connection off. */
  readonly isAborted: () => boolean;
}

export type WireMessage =
  | { readonly role: "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      readonly reasoning?: { readonly text: string; readonly signature: string };
      readonly calls: readonly {
        readonly id: string;
        readonly name: string;
        readonly arguments: unknown;
      }[];
    }
  | { readonly role: "tool"; readonly id: string; readonly text: string };

/**
 * A provider's server. It checks each request as strictly as the provider does, and refuses it with
 * its own 400 where it breaks a rule: an unknown field, a call without its result right behind it,
 * an id met twice, arguments that are no JSON object, a message without content, and so on.
 */
export interface WireServer {
  readonly url: string;
  readonly requests: readonly WireRequest[];
  /** What the next requests get, one each; one more than these gets a 500. */
  answer(...answers: readonly WireAnswer[]): void;
  close(): Promise<void>;
}
