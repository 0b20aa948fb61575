import type { Journal } from "../agent/journal.ts";
import type { TurnStep } from "../session/turn.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import type { Clock } from "./clock.ts";
import { ENDED, type Hold } from "./hold.ts";

export interface JournalOptions {
  readonly hold: Hold;
  readonly clock: Clock;
  /** Those that earlier tries of the turn have kept. */
  readonly steps: readonly TurnStep[];
  /** What has to be settled before the turn has any effect. */
  readonly ready: Promise<unknown>;
}

/** Most tools beside one another end within it, and then their results take one write. */
const PROGRESS_MS = 1000;

/**
 * Keeps a turn's steps in the store: each before its tools run, if one of them has effects. Steps
 * without are kept with the next that has some, so that a turn that only reads pays for none.
 */
export const journalOn = ({ hold, clock, steps, ready }: JournalOptions): Journal => {
  let kept = steps.length;
  let unkept: TurnStep[] = [];
  /** The results of the step that runs, as far as they are known and not stored yet. */
  let late: { results: TurnStep["results"]; readonly ended: AbortController } | undefined;

  const store = async (step: number, results: TurnStep["results"]): Promise<void> => {
    await hold.keep({ step, results }).catch(unlessUnavailable);
  };

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
    progress: (index, results) => {
      if (late) {
        late.results = results;
        return;
      }
      const waiting = { results, ended: new AbortController() };
      late = waiting;
      const { signal } = waiting.ended;
      // Every step in which a tool has ended is finished, also where its turn has to end.
      void clock.sleep(PROGRESS_MS, signal).then(async () => {
        if (signal.aborted) return;
        late = undefined;
        // What it rejects with is met by the write behind it, or has ended the turn already.
        await store(index, waiting.results).catch(() => {});
      });
    },
    finish: async (index, results) => {
      late?.ended.abort(ENDED);
      late = undefined;
      if (index >= kept) {
        unkept = unkept.with(index - kept, { ...unkept[index - kept], results } as TurnStep);
        return;
      }
      const before = steps[index]?.results ?? [];
      if (results.some((result, at) => result !== (before[at] ?? null))) {
        await store(index, results);
      }
    },
  };
};

/** The runner knows the results all the same, and may get to its commit; `hold` keeps no step after this. */
const unlessUnavailable = (error: unknown): void => {
  if (!(error instanceof StoreUnavailableError)) throw error;
};
