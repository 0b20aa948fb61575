/**
 * The agent loop: ask the model, run the tools that it calls, ask again, until it answers.
 *
 * An agent is configuration and holds nothing between turns, so one at module scope serves any
 * number of sessions at once. A turn that fails leaves its session as it was.
 */
import { randomUUID } from "node:crypto";
import { kindOf } from "../session/json.ts";
import { checkMessage, type Message, systemMessage, userMessage } from "../session/message.ts";
import type { Session } from "../session/session.ts";
import type { Finish } from "../session/turn.ts";
import { unlessAborted } from "./abort.ts";
import { type RunningStep, type RunningTurn, runCalls } from "./calls.ts";
import { emitter, type Listener } from "./events.ts";
import { unusedId } from "./ids.ts";
import { type Journal, NO_JOURNAL } from "./journal.ts";
import type { Model, ModelReply, Usage } from "./model.ts";
import { reasonOf } from "./reason.ts";
import { resultMessages } from "./results.ts";
import { finalText, type Step, stepsOf } from "./steps.ts";
import { checkTools, type Tool } from "./tool.ts";
import { addUsage, NO_USAGE } from "./usage.ts";
import { modelView, type Window } from "./view.ts";

export interface AgentOptions {
  readonly model: Model;
  readonly tools?: readonly Tool[];
  /** The system prompt; it goes into a session's history once, before its first message. "" for none. */
  readonly system?: string;
  /** How often a turn may ask the model. */
  readonly maxSteps?: number;
  /** Shows the model only the newest turns before the present one, behind the system prompt. */
  readonly window?: Window;
}

export interface RunOptions {
  /** Aborts the turn: `runTurn` rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Watches the turn, and has no say in it: what it throws is dropped. Silent after `signal` aborts. */
  readonly onEvent?: Listener;
  /** Names the turn to its tools. A random one by default. */
  readonly turnId?: string;
  /** Keeps the turn's steps, and brings those of earlier tries. */
  readonly journal?: Journal;
  /** Goes to the tools: a turn of the session that began later has a larger one. 0 by default. */
  readonly fence?: number;
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
    for (const bound of ["turns", "bytes"] as const) {
      const value = window?.[bound] ?? 0;
      if (!Number.isSafeInteger(value) || value < 0)
        throw new TypeError(`window.${bound} must be a whole number, 0 or more`);
    }
    if (window?.summarize && !window.turns)
      throw new TypeError("window.summarize needs window.turns, 1 or more");
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
      journal: options.journal ?? NO_JOURNAL,
      fence: options.fence ?? 0,
    };
    const before = session.messages.length;
    const messages = [...session.messages];
    if (before === 0 && this.system !== "") messages.push(systemMessage(this.system));
    messages.push(userMessage(userInput));
    let usage = NO_USAGE;
    let finish: Finish = "max_steps";
    let saved: Promise<void> = Promise.resolve();
    // What was done stands in the history, whatever may be done now.
    const maxSteps = Math.max(this.maxSteps, turn.journal.steps.length);

    for (let index = 0; index < maxSteps && finish !== "final"; index++) {
      const step = { ...turn, index };
      turn.emit({ type: "step.started", index });
      const kept = turn.journal.steps[index];
      const reply = kept ?? (await this.#ask(messages, step, options.onEvent));
      usage = addUsage(usage, reply.usage);
      messages.push(reply.message);
      await unlessAborted(saved, signal);
      if (reply.message.toolCalls.length === 0) {
        finish = "final";
      } else {
        const results = await runCalls(this.tools, reply, step);
        saved = turn.journal.finish(index, results);
        // What it rejects with is met where it is awaited, which may be never.
        saved.catch(() => {});
        signal.throwIfAborted();
        messages.push(...resultMessages(reply.message, results));
      }
    }
    await unlessAborted(saved, signal);
    signal.throwIfAborted();

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

  async #ask(
    messages: readonly Message[],
    { signal, emit, index }: RunningStep,
    listener: Listener | undefined,
  ): Promise<ModelReply> {
    signal.throwIfAborted();
    const watch = listener
      ? {
          onText: (delta: string) => emit({ type: "text.delta", delta }),
          onRestart: () => emit({ type: "step.started", index }),
        }
      : {};
    try {
      const tools = Array.from(this.tools.values(), ({ spec }) => spec);
      const { provider } = this.model;
      const view = modelView(messages, { window: this.window, provider });
      const ask = async () => this.model.complete(view, tools, { signal, ...watch });
      const reply: unknown = await unlessAborted(ask(), signal);
      if (!isReply(reply))
        throw new TypeError(`it resolved with ${kindOf(reply)} in place of a reply`);
      const message = checkMessage(reply.message, "message");
      if (message.role !== "assistant")
        throw new TypeError(`the model replied with a ${message.role} message`);
      return { ...reply, message: withIds(message) };
    } catch (cause) {
      signal.throwIfAborted();
      throw new ModelFailedError(`the model failed: ${reasonOf(cause)}`, { cause });
    }
  }
}

/** A call without an id of its own couldn't be answered: it gets one. */
const withIds = (message: Message): Message => {
  const used = new Set<string>();
  const calls = message.toolCalls.map((call) => ({ ...call, id: unusedId(used, call.id) }));
  if (calls.every(({ id }, index) => id === message.toolCalls[index]?.id)) return message;
  return checkMessage({ ...message, toolCalls: calls });
};

const isReply = (reply: unknown): reply is ModelReply =>
  typeof reply === "object" && reply !== null;
