/** Runs the tool calls of one step of a turn. */
import { createHash } from "node:crypto";
import { toJsonObject, toJsonValue } from "../session/json.ts";
import type { ToolCall } from "../session/message.ts";
import type { Session } from "../session/session.ts";
import { unlessAborted } from "./abort.ts";
import type { Listener } from "./events.ts";
import type { Journal } from "./journal.ts";
import type { ModelReply } from "./model.ts";
import { OUTCOME_UNKNOWN } from "./results.ts";
import type { Effect, Tool, ToolContext } from "./tool.ts";
import { addUsage, NO_USAGE } from "./usage.ts";

export type Tools = ReadonlyMap<string, Tool>;

export interface RunningTurn {
  readonly session: Session;
  readonly turnId: string;
  /** Of idempotency keys. */
  readonly scope: string;
  readonly signal: AbortSignal;
  readonly emit: Listener;
  readonly journal: Journal;
  readonly fence: number;
}

export interface RunningStep extends RunningTurn {
  readonly index: number;
}

/**
 * All at once. The results stand in call order; null for those that were still running when the turn
 * was aborted. What an earlier try of the step has kept isn't run again.
 */
export const runCalls = async (
  tools: Tools,
  { message, usage }: ModelReply,
  step: RunningStep,
): Promise<(string | null)[]> => {
  const { journal, signal, index } = step;
  const calls = message.toolCalls;
  const kept = journal.steps[index]?.results;
  if (!kept) {
    const effects = calls.some((call) => effectOf(tools, call) !== "none");
    const intent = { message, usage: addUsage(NO_USAGE, usage), results: calls.map(() => null) };
    await unlessAborted(journal.begin(intent, effects), signal);
  }
  signal.throwIfAborted();
  const results: (string | null)[] = calls.map((_, at) => kept?.[at] ?? null);
  let running = calls.length;
  await Promise.all(
    calls.map(async (call, at) => {
      const known = kept && (kept[at] ?? unknown(tools, call));
      if (known === undefined) journal.check();
      step.emit({ type: "tool.called", call });
      const result = known ?? (await runCall(tools, call, contextOf(step, call, at)));
      if (result !== null) step.emit({ type: "tool.returned", call, result });
      results[at] = result;
      running--;
      const isNews = known === undefined && effectOf(tools, call) !== "none";
      if (isNews && running > 0) journal.progress(index, [...results]);
    }),
  );
  return results;
};

const effectOf = (tools: Tools, { name }: ToolCall): Effect => tools.get(name)?.effect ?? "none";

/** The result of a call that an earlier try began, and of which nobody knows the end. */
const unknown = (tools: Tools, { name }: ToolCall): string | undefined => {
  // A tool that isn't there any more was there when the call was begun.
  const effect = tools.get(name)?.effect ?? "once";
  return effect === "once" ? OUTCOME_UNKNOWN : undefined;
};

const contextOf = (
  { session, scope, turnId, index, fence, signal }: RunningStep,
  call: ToolCall,
  at: number,
): ToolContext => ({
  idempotencyKey: createHash("sha256")
    .update(JSON.stringify([scope, turnId, index, at, call.name, call.arguments]))
    .digest("hex"),
  sessionId: session.sessionId,
  turnId,
  fence,
  signal,
  metadata: toJsonObject(session.metadata),
});

/** Whatever goes wrong in a tool is a result that the model can act on. */
const runCall = (tools: Tools, call: ToolCall, context: ToolContext): Promise<string | null> => {
  const tool = tools.get(call.name);
  // A copy: what a tool does to its arguments must not change the history.
  const run = async () =>
    tool ? tool.call(toJsonValue(call.arguments), context) : noSuchTool(tools, call);
  return unlessAborted(run(), context.signal).catch(() => null);
};

const noSuchTool = (tools: Tools, { name }: ToolCall): string => {
  const names = [...tools.keys()].join(", ") || "none";
  return `error: there is no tool named ${JSON.stringify(name)}; there are: ${names}`;
};
