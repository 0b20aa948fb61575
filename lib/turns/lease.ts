/**
 * A claim lasts for one short lease, so that a dead runner doesn't block its session for long; a
 * runner that is alive extends it. Only waiting rests on this: what may be written is decided by
 * attempt, fence and version, whatever the clocks say.
 */
import type { Held, SessionStore } from "../store/store.ts";
import type { Clock } from "./clock.ts";

/** Covers the difference of two machines' clocks. */
const MARGIN_MS = 2000;

export interface LeaseOptions {
  readonly store: SessionStore;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly deadlineMs: number;
}

export const leaseUntilMs = ({ clock, leaseMs, deadlineMs }: Omit<LeaseOptions, "store">): number =>
  Math.min(clock.nowMs() + leaseMs, deadlineMs) + MARGIN_MS;

/**
 * Extends the claim each half lease until `ended` aborts, and calls `onLost` where it isn't the
 * runner's any more. Never rejects; resolves when no write of its own is on the way.
 */
export const keepLease = async (
  held: Held,
  options: LeaseOptions,
  { ended, onLost }: { readonly ended: AbortSignal; readonly onLost: () => void },
): Promise<void> => {
  const { store, clock, leaseMs } = options;
  for (;;) {
    await clock.sleep(leaseMs / 2, ended);
    if (ended.aborted) return;
    try {
      const renewed = await store.renew({ ...held, untilMs: leaseUntilMs(options) });
      if (!renewed.applied && renewed.seen?.claim?.attempt !== held.attempt) return onLost();
    } catch {
      // There is time for another try; where the trouble lasts, the commit meets it and tells.
    }
  }
};
