/** Where a runner tells that it is, and can be stopped: killed there, it dies at exactly that point. */
import type { ClaimResult, SessionStore, WriteResult } from "../../../lib/store/store.ts";

export const POINTS = [
  "before the claim",
  "after the claim",
  "in the first model call",
  "after the segment",
  "before the intent",
  "after the intent",
  "in a tool",
  "after a tool",
  "before the outcome",
  "in a later model call",
  "after the outcome",
  "before the commit",
  "after the commit",
  "before the answer",
] as const;

export type Point = (typeof POINTS)[number];

/** Passes a point, or never comes back from it. */
export type At = (point: Point) => void;

/** The nth passing of a point, counted from the request that carries this. */
export interface Stop {
  readonly at: Point;
  readonly nth: number;
}

/** The header of a request that carries a `Stop` as JSON, or nothing to forget the last one. */
export const STOP_HEADER = "x-stop";

/** The header of a request that carries how far ahead of the real time its runner's clock goes from then on, in ms. */
export const AHEAD_HEADER = "x-ahead";

/** The store, with the points before and after its writes. */
export const pointedStore = (store: SessionStore, at: At): SessionStore => {
  const claimed =
    <Write, Result extends ClaimResult | WriteResult>(write: (value: Write) => Promise<Result>) =>
    (value: Write) =>
      between(["before the claim", "after the claim"], () => write(value));

  const between = async <Result extends ClaimResult | WriteResult>(
    [before, after]: readonly [Point, Point],
    write: () => Promise<Result>,
  ): Promise<Result> => {
    at(before);
    const result = await write();
    if (result.applied) at(after);
    return result;
  };

  return {
    ...store,
    create: claimed(store.create),
    claim: claimed(store.claim),
    takeOver: claimed(store.takeOver),
    checkpoint: (write) =>
      between(
        "steps" in write.kept
          ? ["before the intent", "after the intent"]
          : ["before the outcome", "after the outcome"],
        () => store.checkpoint(write),
      ),
    seal: async (head) => {
      const sealed = await store.seal(head);
      if (sealed.to > head.tailFrom) at("after the segment");
      return sealed;
    },
    commit: (write) =>
      between(["before the commit", "after the commit"], () => store.commit(write)),
  };
};
