/** What happened in a simulated run, as its checks need it. */
import type { Message } from "../../lib/session/message.ts";
import type { TurnResult } from "../../lib/turns/result.ts";

/** One try of a client to have a turn run. */
export interface Delivery {
  readonly name: string;
  readonly process: string;
  /** Absent for a turn that the server names. */
  readonly turnId: string | undefined;
  readonly input: string;
  readonly onBusy: string;
  /** Answers that clients had when this was sent. */
  readonly answersBefore: number;
  /** The life of the session that it saw last. */
  incarnation: string | undefined;
  granted: Granted | undefined;
  readonly modelCalls: ModelCall[];
  outcome: Outcome | undefined;
}

export type Outcome =
  | { readonly kind: "answer"; readonly result: TurnResult }
  | { readonly kind: "error"; readonly error: unknown };

/** What a delivery got the session as. */
export interface Granted {
  readonly incarnation: string;
  readonly version: number;
}

export interface ModelCall {
  readonly granted: Granted | undefined;
  /** What stood in the history, as the model was shown it. */
  readonly history: readonly Message[];
  /** The text of the answer, where it was one. */
  reply: string | undefined;
}

/** A tool's run, from the moment in which it can't be taken back. */
export interface Effect {
  readonly delivery: Delivery;
  readonly granted: Granted | undefined;
  readonly tool: string;
  readonly turnId: string;
  /** The model's own name for the call. */
  readonly call: string;
  readonly key: string;
  /** Whether the call was in the table when the tool began. */
  readonly isKept: boolean;
}

export interface Answer {
  readonly delivery: Delivery;
  readonly result: TurnResult;
}

export interface Log {
  readonly deliveries: Delivery[];
  readonly effects: Effect[];
  /** In the order in which clients got them. */
  readonly answers: Answer[];
  /** Calls that stood in the table at some time. */
  readonly kept: Set<string>;
  /** Calls whose results were kept, as their runner was told. */
  readonly finished: Set<string>;
  /** Of each session the last claim that was granted, and until when it was ever said to last. */
  readonly claims: Map<string, { readonly attempt: string; readonly untilMs: number }>;
  /** Attempts that got a session while another's claim was alive. */
  readonly displacing: Set<string>;
  /** Lives of the session that somebody asked to end. */
  readonly deleted: Set<string>;
  /** What the run came through, by name. */
  readonly seen: Set<string>;
  /** What must not happen at all. */
  readonly faults: string[];
}

export const newLog = (): Log => ({
  deliveries: [],
  effects: [],
  answers: [],
  kept: new Set(),
  finished: new Set(),
  claims: new Map(),
  displacing: new Set(),
  deleted: new Set(),
  seen: new Set(),
  faults: [],
});
