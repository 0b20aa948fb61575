import type { Journal } from "../agent/journal.ts";
import type { TurnStep } from "../session/turn.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import type { Hold } from "./hold.ts";

export interface JournalOptions {
  readonly hold: Hold;
  /** Those that earlier tries of the turn have kept. */
  readonly steps: readonly TurnStep[];
  /** What has to be settled before the turn has any effect. */
  readonly ready: Promise<unknown>;
}

/**
 * Keeps a turn's steps in the store: each before its tools run, if one of them has effects. Steps
 * without are kept with the next that has some, so that a turn that only reads pays for none.
 */
export const journalOn = ({ hold, steps, ready }: JournalOptions): Journal => {
  let kept = steps.length;
  let unkept: TurnStep[] = [];

  return {
    steps,
    begin: async (step, effects) => {
      await ready;
      unkept.push(step);
      if (!effects) return;
      await hold.keep({ steps: unkept });
      kept += unkept.length;
      unkept = [];
    },
    check: hold.check,
    finish: async (index, results) => {
      if (index >= kept) {
        unkept = unkept.with(index - kept, { ...unkept[index - kept], results } as TurnStep);
        return;
      }
      const before = steps[index]?.results ?? [];
      if (results.some((result, at) => result !== (before[at] ?? null))) {
        await hold.keep({ step: index, results }).catch(unlessUnavailable);
      }
    },
  };
};

/** The runner knows the results all the same, and may get to its commit; `hold` keeps no step after this. */
const unlessUnavailable = (error: unknown): void => {
  if (!(error instanceof StoreUnavailableError)) throw error;
};
