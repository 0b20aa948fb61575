import type { TurnStep } from "../session/turn.ts";

/**
 * Keeps what a turn has done, so that another try of it goes on from there. A step is the model's
 * message with its tool calls, and their results.
 */
export interface Journal {
  /** What earlier tries of the turn did. The agent doesn't ask the model for these steps again. */
  readonly steps: readonly TurnStep[];
  /**
   * Before any tool of a step runs. What it rejects with ends the turn: no tool of the step has run.
   *
   * @param effects whether the step has calls that mustn't be repeated at will
   */
  begin(step: TurnStep, effects: boolean): Promise<void>;
  /** Right before a tool starts. What it throws ends the turn: the tool doesn't start. */
  check(): void;
  /** As a tool with an effect ended while others of its step still run: what is known, null for those. It may be dropped. */
  progress(index: number, results: TurnStep["results"]): void;
  /** After the tools of a step ran; null for those that didn't finish. It overlaps the next model call. */
  finish(index: number, results: TurnStep["results"]): Promise<void>;
}

/** For an agent that runs on its own: a turn that ends early is run from its beginning. */
export const NO_JOURNAL: Journal = {
  steps: [],
  begin: async () => {},
  check: () => {},
  progress: () => {},
  finish: async () => {},
};
