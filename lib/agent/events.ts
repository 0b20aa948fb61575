import type { ToolCall } from "../session/message.ts";

/** What a turn tells of itself while it runs. */
export type AgentEvent =
  /** Once more for a step whose model call is tried again: its text so far is void. */
  | { readonly type: "step.started"; readonly index: number }
  | { readonly type: "text.delta"; readonly delta: string }
  | { readonly type: "tool.called"; readonly call: ToolCall }
  | { readonly type: "tool.returned"; readonly call: ToolCall; readonly result: string };

export type Listener = (event: AgentEvent) => void;

/** What a listener throws is dropped; it hears nothing after the signal aborts. */
export const emitter =
  (listen: Listener | undefined, signal: AbortSignal): Listener =>
  (event) => {
    if (!listen || signal.aborted) return;
    // The async function catches what a listener throws, and what an async listener rejects with.
    (async () => listen(event))().catch(() => {});
  };
