/** All that can be seen of a run from outside. */
import type { MessageJson } from "../../../lib/session/message.ts";
import type { Line } from "./agent.ts";
import type { Point } from "./points.ts";

export interface Evidence {
  /** By its id. */
  readonly turns: ReadonlyMap<string, AskedTurn>;
  readonly history: History;
  /** What the runners wrote down. */
  readonly lines: readonly Line[];
  readonly kills: readonly Killed[];
  /** From a caller's broken connection to its outcome. */
  readonly waitsMs: readonly number[];
  /** What was wrong while it ran. */
  readonly faults: readonly string[];
}

export interface AskedTurn {
  readonly input: string;
  /** When it was first sent, and first had an outcome, as numbers in one sequence of all such moments. */
  readonly sent: number;
  readonly told: number;
  /** What each of its callers was told, and then one more who came after everything. */
  readonly outcomes: readonly Outcome[];
}

export type Outcome =
  | { readonly kind: "done"; readonly answer: Answer; readonly replayed: boolean }
  /** Given up for another turn: it is not in the history, and never will be. */
  | { readonly kind: "superseded" };

export interface TurnOfHistory {
  readonly turn_id: string;
  readonly version: number;
  readonly finish: string;
  readonly messages: readonly MessageJson[];
}

export interface Answer extends TurnOfHistory {
  readonly final: string;
}

export interface History {
  readonly head: {
    readonly version: number;
    readonly turn_count: number;
    readonly message_count: number;
    readonly turn: unknown;
  };
  readonly turns: readonly TurnOfHistory[];
  readonly messages: readonly MessageJson[];
}

export interface Killed {
  readonly how: "at" | "after";
  /** The last one that the runner told. */
  readonly point: Point | undefined;
}
