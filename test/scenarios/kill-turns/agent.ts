/**
 * An agent whose turns do what their input says, with tools of all three effects. It writes every
 * model call and every effect down in a file that outlives it.
 */
import { createHash, randomUUID } from "node:crypto";
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "../../../lib/agent/agent.ts";
import type { Model } from "../../../lib/agent/model.ts";
import { type Effect, tool } from "../../../lib/agent/tool.ts";
import {
  assistantMessage,
  type MessageJson,
  messageToJson,
  type ToolCall,
} from "../../../lib/session/message.ts";
import type { At } from "./points.ts";

export const EFFECTS = { look: "none", put: "idempotent", pay: "once" } as const;

export type ToolName = keyof typeof EFFECTS;

export const effectOf = (name: string): Effect | undefined =>
  new Map<string, Effect>(Object.entries(EFFECTS)).get(name);

/** What a turn does: its input, as JSON. */
export interface Script {
  readonly session: string;
  readonly turn: string;
  /** The tools that the model asks for, step by step; then it answers. */
  readonly steps: readonly (readonly ToolName[])[];
  readonly modelMs: number;
  readonly toolMs: number;
  readonly resultBytes: number;
  /** Makes the input as large as it is to be. */
  readonly pad: string;
}

/** What it writes down. */
export type Line = Asked | Effected;

export interface Asked {
  readonly event: "asked";
  readonly turn: string;
  readonly step: number;
  readonly pid: number;
}

export interface Effected {
  /** The effect takes place with the first. */
  readonly event: "started" | "ended";
  readonly turn: string;
  readonly tool: ToolName;
  readonly key: string;
  readonly call: string;
  /** Of the call in its turn: the step, and the number there. */
  readonly place: readonly [number, number];
  readonly pid: number;
}

export const SYSTEM = "Be exact.";

export const linesFile = (folder: string, session: string): string => join(folder, session);

/** In what the model says it is not the same twice: as with real ones, each call of a tool gets a new id. */
export const scriptedAgent = (folder: string, at: At): Agent => {
  const write = lineWriter(folder);

  const model: Model = {
    complete: async (messages, _tools, { signal }) => {
      const asked = messages.findLastIndex(({ role }) => role === "user");
      const script: Script = JSON.parse(messages[asked]?.content ?? "");
      const step = messages.slice(asked).filter(({ role }) => role === "assistant").length;
      write(script.session, { event: "asked", turn: script.turn, step, pid: process.pid });
      at(step === 0 ? "in the first model call" : "in a later model call");
      await sleep(script.modelMs, undefined, { signal });
      const tools = script.steps[step];
      const message = tools
        ? assistantMessage("", callsOf(script, step, tools))
        : assistantMessage(answerTo(messages.map(messageToJson)));
      return { message };
    },
  };

  const counted = (name: ToolName) =>
    tool<CallArguments>({
      name,
      description: `Its effect is ${EFFECTS[name]}.`,
      parameters: { type: "object" },
      effect: EFFECTS[name],
      run: async ({ call, place, toolMs, resultBytes }, { idempotencyKey, sessionId, turnId }) => {
        const key = idempotencyKey;
        const line = { turn: turnId, tool: name, key, call, place, pid: process.pid };
        write(sessionId, { event: "started", ...line });
        at("in a tool");
        await sleep(toolMs);
        write(sessionId, { event: "ended", ...line });
        at("after a tool");
        return resultOf(call, resultBytes);
      },
    });

  return new Agent({
    model,
    tools: [counted("look"), counted("put"), counted("pay")],
    system: SYSTEM,
  });
};

/** Of its whole history: it shows what the model was told. */
export const answerTo = (history: readonly MessageJson[]): string => {
  const digest = createHash("sha256").update(JSON.stringify(history)).digest("hex");
  return `after ${history.length} messages: ${digest}`;
};

export const resultOf = (call: string, bytes: number): string =>
  `${DONE} ${call}${noise(call, bytes)}`;

export const DONE = "done";

/** Text that hardly gets smaller when it is compressed. */
export const noise = (seed: string, bytes: number): string =>
  Array.from({ length: Math.ceil(bytes / 64) }, (_, n) =>
    createHash("sha256").update(`${seed} ${n}`).digest("base64"),
  )
    .join("")
    .slice(0, bytes);

type CallArguments = {
  readonly call: string;
  readonly place: Effected["place"];
} & Pick<Script, "toolMs" | "resultBytes">;

const callsOf = (
  { toolMs, resultBytes }: Script,
  step: number,
  tools: readonly ToolName[],
): ToolCall[] =>
  tools.map((name, n) => {
    const call = randomUUID();
    return { id: call, name, arguments: { call, place: [step, n], toolMs, resultBytes } };
  });

/** Each line is one synchronous write at the file's end: it is there whole, whatever happens to its writer then. */
const lineWriter = (folder: string): ((session: string, line: Line) => void) => {
  const files = new Map<string, number>();
  return (session, line) => {
    const file = files.get(session) ?? openSync(linesFile(folder, session), "as");
    files.set(session, file);
    writeSync(file, `${JSON.stringify(line)}\n`);
  };
};
