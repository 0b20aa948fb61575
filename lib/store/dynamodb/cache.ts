import type { DoneTurn } from "../../session/turn.ts";
import type { TurnRange } from "../store.ts";

/** Turns [from, to) of one incarnation, decoded. */
export interface Segment extends TurnRange {
  readonly turns: readonly DoneTurn[];
  /** Of its JSON. */
  readonly bytes: number;
}

/**
 * Segments that this process has read or written, the longest unused dropped first. They never
 * change, and are kept by incarnation, so that one can't be stale, nor a namesake's.
 */
export interface SegmentCache {
  /** Cached segments that cover the range from its beginning on, as far as there is no gap. */
  cover(incarnation: string, range: TurnRange): Segment[];
  add(incarnation: string, segment: Segment): void;
}

export const segmentCache = (maxBytes: number): SegmentCache => {
  /** By incarnation and first turn. A Map keeps the order of insertion: the first is the longest unused. */
  const sessions = new Map<string, Map<number, Segment>>();
  let bytes = 0;

  const touch = (incarnation: string): Map<number, Segment> => {
    const segments = sessions.get(incarnation) ?? new Map<number, Segment>();
    sessions.delete(incarnation);
    sessions.set(incarnation, segments);
    return segments;
  };

  const evict = (): void => {
    for (const [incarnation, segments] of sessions) {
      for (const [from, segment] of segments) {
        if (bytes <= maxBytes) return;
        segments.delete(from);
        bytes -= segment.bytes;
      }
      sessions.delete(incarnation);
    }
  };

  return {
    cover: (incarnation, { from, to }) => {
      if (!sessions.has(incarnation)) return [];
      const segments = touch(incarnation);
      const covering: Segment[] = [];
      let next =
        segments.get(from) ?? [...segments.values()].find((it) => it.from <= from && from < it.to);
      while (next && next.from < to) {
        covering.push(next);
        next = segments.get(next.to);
      }
      return covering;
    },
    add: (incarnation, segment) => {
      if (segment.bytes > maxBytes) return;
      const segments = touch(incarnation);
      bytes += segment.bytes - (segments.get(segment.from)?.bytes ?? 0);
      segments.set(segment.from, segment);
      evict();
    },
  };
};

export interface ByteCache<T> {
  get(key: string): T | undefined;
  add(key: string, value: T, bytes: number): void;
}

/** Drops the longest unused values when their bytes add up to more than `maxBytes`. */
export const byteCache = <T>(maxBytes: number): ByteCache<T> => {
  const entries = new Map<string, { readonly value: T; readonly bytes: number }>();
  let sum = 0;
  const drop = (key: string): void => {
    sum -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  };
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (!entry) return undefined;
      entries.delete(key);
      entries.set(key, entry);
      return entry.value;
    },
    add: (key, value, bytes) => {
      drop(key);
      if (bytes > maxBytes) return;
      entries.set(key, { value, bytes });
      sum += bytes;
      for (const oldest of entries.keys()) {
        if (sum <= maxBytes) return;
        drop(oldest);
      }
    },
  };
};
