/**
 * The agent loop: ask the model, run the tools that it calls, ask again, until it answers.
 *
 * An agent is configuration and holds nothing between turns, so one at module scope serves any
 * number of sessions at once. A turn that fails leaves its session as it was.
 */
import { createHash, randomUUID } from "node:crypto";
import { kindOf, toJsonObject, toJsonValue } from "../session/json.ts";
import {
  checkMessage,
  type Message,
  systemMessage,
  type ToolCall,
  toolMessage,
  userMessage,
} from "../session/message.ts";
import type { Session } from "../session/session.ts";
import type { Finish } from "../session/turn.ts";
import { unlessAborted } from "./abort.ts";
import type { Model, ModelReply, Usage } from "./model.ts";
import { reasonOf } from "./reason.ts";
import { finalText, type Step, stepsOf } from "./steps.ts";
import type { Tool } from "./tool.ts";
import { modelView } from "./view.ts";

export interface AgentOptions {
  readonly model: Model;
  readonly tools?: readonly Tool[];
  /** The system prompt; it goes into a session's history once, before its first message. "" for none. */
  readonly system?: string;
  /** How often a turn may ask the model. */
  readonly maxSteps?: number;
  /**
   * Shows the model only the newest turns before the present one, behind the system prompt. Older
   * history isn't even read.
   */
  readonly window?: Window;
}

export interface Window {
  readonly turns: number;
}

export interface RunOptions {
  /** Aborts the turn: `runTurn` rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Watches the turn, and has no say in it: what it throws is dropped. Silent after `signal` aborts. */
  readonly onEvent?: (event: AgentEvent) => void;
  /** Names the turn to its tools. A random one by default. */
  readonly turnId?: string;
  /** What has to be settled before any tool runs; it overlaps the first model call. */
  readonly ready?: Promise<unknown>;
  /** What makes idempotency keys differ between lives of a session id. The session id by default. */
  readonly idempotencyScope?: string;
}

export interface RunResult {
  /** The whole history with this turn: what `session.messages` now is. */
  readonly messages: readonly Message[];
  readonly steps: readonly Step[];
  /** The model's answer; "" where its steps were used up. */
  readonly final: string;
  readonly finish: Finish;
  /** Summed over the turn's model calls; 0 where the model tells none. */
  readonly usage: Usage;
}

export type AgentEvent =
  | { readonly type: "step.started"; readonly index: number }
  | { readonly type: "text.delta"; readonly delta: string }
  | { readonly type: "tool.called"; readonly call: ToolCall }
  | { readonly type: "tool.returned"; readonly call: ToolCall; readonly result: string };

/** The model gave no usable reply; `cause` says why. The session is as it was. */
export class ModelFailedError extends Error {
  override readonly name = "ModelFailedError";
}

export class Agent {
  readonly model: Model;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly system: string;
  readonly maxSteps: number;
  readonly window: Window | undefined;

  /** @throws {TypeError} for options that no turn could run with */
  constructor({ model, tools = [], system = "", maxSteps = 8, window }: AgentOptions) {
    if (typeof model?.complete !== "function")
      throw new TypeError("model must have a method complete");
    if (typeof system !== "string") throw new TypeError("system must be a string");
    checkTools(tools);
    if (!Number.isSafeInteger(maxSteps) || maxSteps < 0) {
      throw new TypeError("maxSteps must be a whole number, 0 or more");
    }
    this.model = model;
    this.tools = new Map(tools.map((tool) => [tool.spec.name, tool]));
    this.system = system;
    if (window && !(Number.isSafeInteger(window.turns) && window.turns >= 0)) {
      throw new TypeError("window.turns must be a whole number, 0 or more");
    }
    this.maxSteps = maxSteps;
    this.window = window;
  }

  /**
   * Runs one turn and appends it to `session.messages`. Turns of one session must not overlap:
   * `createTurns` sees to that.
   *
   * @throws {ModelFailedError} where the model fails
   */
  async runTurn(session: Session, userInput: string, options: RunOptions = {}): Promise<RunResult> {
    const signal = options.signal ?? new AbortController().signal;
    const turn: RunningTurn = {
      session,
      turnId: options.turnId ?? randomUUID(),
      scope: options.idempotencyScope ?? session.sessionId,
      signal,
      emit: emitter(options.onEvent, signal),
    };
    const before = session.messages.length;
    const messages = [...session.messages];
    if (before === 0 && this.system !== "") messages.push(systemMessage(this.system));
    messages.push(userMessage(userInput));
    let usage: Usage = { inputTokens: 0, outputTokens: 0 };
    let finish: Finish = "max_steps";

    for (let index = 0; index < this.maxSteps && finish !== "final"; index++) {
      turn.emit({ type: "step.started", index });
      const reply = await this.#ask(messages, turn);
      usage = add(usage, reply.usage);
      messages.push(reply.message);
      const calls = reply.message.toolCalls;
      if (calls.length === 0) finish = "final";
      await options.ready;
      signal.throwIfAborted();
      messages.push(
        ...(await Promise.all(calls.map((call, at) => this.#call(call, turn, [index, at])))),
      );
      turn.signal.throwIfAborted();
    }

    session.messages = messages;
    const added = messages.slice(before);
    return {
      messages: [...messages],
      steps: stepsOf(added, finish),
      final: finalText(added, finish),
      finish,
      usage,
    };
  }

  async #ask(messages: readonly Message[], { signal, emit }: RunningTurn): Promise<ModelReply> {
    signal.throwIfAborted();
    try {
      const tools = Array.from(this.tools.values(), ({ spec }) => spec);
      const onText = (delta: string) => emit({ type: "text.delta", delta });
      const ask = async () =>
        this.model.complete(modelView(messages, this.window?.turns), tools, { signal, onText });
      const reply: unknown = await unlessAborted(ask(), signal);
      if (!isReply(reply))
        throw new TypeError(`it resolved with ${kindOf(reply)} in place of a reply`);
      const message = checkMessage(reply.message, "message");
      if (message.role !== "assistant")
        throw new TypeError(`the model replied with a ${message.role} message`);
      return { ...reply, message };
    } catch (cause) {
      signal.throwIfAborted();
      throw new ModelFailedError(`the model failed: ${reasonOf(cause)}`, { cause });
    }
  }

  /** Never rejects: whatever goes wrong in a tool is a result that the model can act on. */
  async #call(
    call: ToolCall,
    turn: RunningTurn,
    place: readonly [number, number],
  ): Promise<Message> {
    const { session, turnId, signal, emit } = turn;
    emit({ type: "tool.called", call });
    const tool = this.tools.get(call.name);
    const context = {
      idempotencyKey: createHash("sha256")
        .update(JSON.stringify([turn.scope, turnId, ...place, call.name, call.arguments]))
        .digest("hex"),
      sessionId: session.sessionId,
      turnId,
      signal,
      metadata: toJsonObject(session.metadata),
    };
    // A copy: what a tool does to its arguments must not change the history.
    const run = async () =>
      tool ? tool.call(toJsonValue(call.arguments), context) : this.#noSuchTool(call);
    const result = await unlessAborted(run(), signal).catch(() => "error: interrupted");
    emit({ type: "tool.returned", call, result });
    return toolMessage(call.id, result);
  }

  #noSuchTool({ name }: ToolCall): string {
    const names = [...this.tools.keys()].join(", ") || "none";
    return `error: there is no tool named ${JSON.stringify(name)}; there are: ${names}`;
  }
}

const checkTools = (tools: readonly Tool[]): void => {
  const isList: boolean = Array.isArray(tools);
  if (!isList) throw new TypeError("tools must be an array");
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (!tool?.spec || typeof tool.call !== "function") {
      throw new TypeError(`tools[${index}] must be made with tool()`);
    }
    if (names.has(tool.spec.name)) throw new TypeError(`two tools have the name ${tool.spec.name}`);
    names.add(tool.spec.name);
  }
};

const isReply = (reply: unknown): reply is ModelReply =>
  typeof reply === "object" && reply !== null;

interface RunningTurn {
  readonly session: Session;
  readonly turnId: string;
  readonly scope: string;
  readonly signal: AbortSignal;
  readonly emit: (event: AgentEvent) => void;
}

// The async function catches what a listener throws, and what an async listener rejects with.
const emitter =
  (listen: RunOptions["onEvent"], signal: AbortSignal): RunningTurn["emit"] =>
  (event) => {
    if (!listen || signal.aborted) return;
    (async () => listen(event))().catch(() => {});
  };

const add = (sum: Usage, more: Usage | undefined): Usage => ({
  inputTokens: sum.inputTokens + tokens(more?.inputTokens),
  outputTokens: sum.outputTokens + tokens(more?.outputTokens),
});

/** Some SDKs say NaN for "unknown", which JSON can't hold: the stored turn couldn't be read again. */
const tokens = (count: number | undefined): number =>
  typeof count === "number" && Number.isFinite(count) && count > 0 ? count : 0;
