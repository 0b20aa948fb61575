import type { DoneTurn, TurnStep } from "../../session/turn.ts";
import { turnBytes } from "../counts.ts";
import { type Head, isAlive, type RecentTurn, type SessionKey } from "../head.ts";
import { partitionKey } from "../keys.ts";
import type { ClaimResult, Incarnation, Kept, SessionStore, Summary } from "../store.ts";
import {
  type Change,
  checkpointed,
  claimed,
  committed,
  created,
  deleted,
  displaced,
  isSameOpen,
  released,
  renewed,
  takenOver,
  withMetadata,
} from "./heads.ts";

/** A store for tests and trials: its sessions end with the process. */
export const memorySessionStore = (): SessionStore => {
  const heads = new Map<string, Head>();
  /** By incarnation: what is sealed. */
  const sealedTurns = new Map<string, DoneTurn[]>();
  const records = new Map<string, Map<string, RecentTurn>>();
  /** By incarnation, in the order of what they cover. */
  const summaries = new Map<string, readonly Summary[]>();
  /** By incarnation: the input and the steps of its open turn. */
  const opened = new Map<string, { readonly input: string; readonly steps: readonly TurnStep[] }>();

  const find = (key: SessionKey): Head | undefined => heads.get(partitionKey(key));

  /** Copies on the way in and out, so that nobody holds a part of the store. */
  const write = async (key: SessionKey, change: Change): Promise<ClaimResult> => {
    const stood = find(key);
    const head = change(stood);
    if (!head) return { applied: false, seen: structuredClone(stood) };
    if (!isSameOpen(stood, head)) {
      opened.set(head.incarnation, { input: head.open?.input ?? "", steps: [] });
    }
    heads.set(partitionKey(key), structuredClone(head));
    return { applied: true, head: structuredClone(head) };
  };

  const keepRecords = (
    { incarnation }: Incarnation,
    more: ReadonlyMap<string, RecentTurn>,
  ): void => {
    records.set(incarnation, new Map([...(records.get(incarnation) ?? []), ...more]));
  };

  return {
    read: async (key) => structuredClone(find(key)),

    create: (it) => write(it.head, created(it)),
    claim: (it) => write(it.key, claimed(it)),
    takeOver: (it) => write(it.key, takenOver(it)),
    displace: (it) => write(it.key, displaced(it)),
    renew: (it) => write(it.key, renewed(it)),
    commit: (it) => write(it.key, committed(it)),
    release: (it) => write(it.key, released(it)),
    delete: (it) => write(it.key, deleted(it)),
    setMetadata: (it) => write(it.key, withMetadata(it)),

    checkpoint: async (it) => {
      const { input = "", steps: before = [] } = opened.get(it.incarnation) ?? {};
      const steps = withKept(before, it.kept);
      const written = await write(it.key, checkpointed(it, steps.length));
      if (written.applied) opened.set(it.incarnation, structuredClone({ input, steps }));
      return written;
    },

    // HEAD has it whole.
    saveInput: async () => {},

    openTurn: async (head) => {
      const stood = find(head);
      if (!stood?.open || !isSameOpen(stood, head)) return undefined;
      if (stood.open.revision !== head.open?.revision) return undefined;
      const { revision: _, ...turn } = stood.open;
      return structuredClone({ ...turn, steps: [], ...opened.get(head.incarnation) });
    },

    turns: async (head, { from, to }) => {
      const sealed = sealedTurns.get(head.incarnation)?.slice(0, head.tailFrom - 1) ?? [];
      return structuredClone([...sealed, ...whole(head)].slice(from - 1, to - 1));
    },

    seal: async (head) => {
      if (head.tail.length < MAX_TAIL_TURNS) return { to: head.tailFrom };
      const sealed = sealedTurns.get(head.incarnation) ?? [];
      // A late seal knows less than what stands there.
      const more = whole(head).slice(Math.max(0, sealed.length - head.tailFrom + 1));
      sealedTurns.set(head.incarnation, [...sealed, ...structuredClone(more)]);
      keepRecords({ key: head, incarnation: head.incarnation }, head.recent);
      return { to: head.version };
    },

    summary: async (head) =>
      summaries.get(head.incarnation)?.findLast(({ to }) => to <= head.version),
    saveSummary: async ({ incarnation }, summary) => {
      const saved = summaries.get(incarnation) ?? [];
      if (saved.some(({ to }) => to === summary.to)) return;
      summaries.set(
        incarnation,
        [...saved, summary].toSorted((a, b) => a.to - b.to),
      );
    },

    findTurn: async ({ incarnation }, turnKey) => records.get(incarnation)?.get(turnKey),

    prepare: async (head, history) => {
      sealedTurns.set(head.incarnation, structuredClone([...history.turns]));
      keepRecords({ key: head, incarnation: head.incarnation }, history.records);
      const version = history.turns.length + 1;
      const { turns } = history;
      const counts = { ...head.counts, turns: turns.length, bytes: turnBytes(...turns) };
      return { ...head, version, tailFrom: version, counts };
    },

    list: async ({ owner, limit, after, nowMs }) => {
      const own = [...heads.values()]
        .filter((head) => head.owner === owner && isAlive(head, nowMs))
        .map((head) => ({
          head,
          place: `${new Date(head.createdAt).toISOString()}#${head.sessionId}`,
        }))
        .filter(({ place }) => after === undefined || place < after)
        .toSorted((a, b) => (a.place < b.place ? 1 : -1));
      const page = own.slice(0, limit);
      const next = own.length > limit ? page.at(-1)?.place : undefined;
      return {
        heads: structuredClone(page.map(({ head }) => head)),
        ...(next === undefined ? {} : { next }),
      };
    },

    purge: async ({ incarnation }) => {
      sealedTurns.delete(incarnation);
      records.delete(incarnation);
      summaries.delete(incarnation);
      opened.delete(incarnation);
    },
  };
};

/** As DynamoDB's HEADs have it, only newer turns stand in a HEAD. */
const MAX_TAIL_TURNS = 4;

const withKept = (steps: readonly TurnStep[], kept: Kept): readonly TurnStep[] =>
  "steps" in kept
    ? [...steps, ...kept.steps]
    : steps.map((step, n) => (n === kept.step ? { ...step, results: kept.results } : step));

const whole = (head: Head): DoneTurn[] => head.tail.filter((turn) => turn.status === "done");
