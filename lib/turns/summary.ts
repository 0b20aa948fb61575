/** What stands for the turns that a window leaves out. */
import { unlessAborted } from "../agent/abort.ts";
import type { Summarize } from "../agent/summary.ts";
import { visibleMessages } from "../session/turn.ts";
import { StoreUnavailableError } from "../store/errors.ts";
import type { Head } from "../store/head.ts";
import type { SessionStore, Summary } from "../store/store.ts";
import { readTurns } from "./history.ts";

export interface Summarizing {
  readonly store: SessionStore;
  readonly head: Head;
  /** As many as are shown behind a new summary. */
  readonly turns: number;
  readonly summarize: Summarize;
  /** The newest one that is stored. */
  readonly known: Summary | undefined;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

export interface Shown {
  /** The number of the first turn that is shown itself. */
  readonly from: number;
  readonly summary: string | undefined;
}

/** A larger one is no summary: it counts as none. */
const MAX_SUMMARY_BYTES = 64 * 1024;

/**
 * The stored summary, or a new one where more than twice as many turns stand behind that. Without
 * one, since it couldn't be made, the newest of them are shown all the same.
 */
export const summarized = async (summarizing: Summarizing): Promise<Shown> => {
  const { store, head, turns, known } = summarizing;
  const from = known?.to ?? 1;
  if (head.version - from <= 2 * turns) return { from, summary: known?.text };
  const to = head.version - turns;
  const text = await summaryText(summarizing, { from, to });
  if (text === undefined) return { from: to - turns, summary: known?.text };
  await store.saveSummary(head, { to, text }).catch((error: unknown) => {
    // The next turn makes it again.
    if (!(error instanceof StoreUnavailableError)) throw error;
  });
  return { from: to, summary: text };
};

const summaryText = async (
  { store, head, summarize, known, signal, nowMs }: Summarizing,
  range: { readonly from: number; readonly to: number },
): Promise<string | undefined> => {
  const messages = visibleMessages(await readTurns(store, head, { range, nowMs }));
  const ask = async (): Promise<unknown> => summarize({ previous: known?.text, messages, signal });
  try {
    const text = await unlessAborted(ask(), signal);
    const isOne = typeof text === "string" && text.trim() !== "";
    return isOne && Buffer.byteLength(text) <= MAX_SUMMARY_BYTES ? text.toWellFormed() : undefined;
  } catch {
    // A turn that has to end meets its signal at its next step.
    return undefined;
  }
};
