import type { DoneTurn, TurnStep } from "../../session/turn.ts";
import { encodeTurn } from "../codec.ts";
import { partitionKey } from "../keys.ts";
import {
  type Claim,
  type ClaimResult,
  type Commit,
  type Displace,
  type Displaced,
  type Head,
  type Held,
  type Incarnation,
  isAlive,
  matches,
  type RecentTurn,
  type SessionKey,
  type SessionStore,
  type TakeOver,
  TOMBSTONE_SECONDS,
} from "../store.ts";

/** A store for tests and trials: its sessions end with the process. */
export const memorySessionStore = (): SessionStore => {
  const heads = new Map<string, Head>();
  /** By incarnation: what is sealed. */
  const sealedTurns = new Map<string, DoneTurn[]>();
  const records = new Map<string, Map<string, RecentTurn>>();
  /** By incarnation: the input and the steps of its open turn. */
  const opened = new Map<string, { readonly input: string; readonly steps: readonly TurnStep[] }>();

  const find = (key: SessionKey): Head | undefined => heads.get(partitionKey(key));

  /** Copies on the way in and out, so that nobody holds a part of the store. */
  const write = (
    key: SessionKey,
    change: (stood: Head | undefined) => Head | undefined,
  ): ClaimResult => {
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

    create: async ({ head, over, nowMs }) =>
      write(head, (stood) => {
        const overSeen = stood && stood.incarnation === over?.incarnation && !isAlive(stood, nowMs);
        return !stood || overSeen ? head : undefined;
      }),

    claim: async (claim) =>
      write(claim.key, (stood) => {
        if (!stood || !claimable(stood, claim) || stood.claim) return undefined;
        if (stood.open && !isSameTurn(stood, claim)) return undefined;
        return grant(stood, claim);
      }),

    takeOver: async (takeOver) =>
      write(takeOver.key, (stood) =>
        isAsSeen(stood, takeOver) && claimable(stood, takeOver)
          ? { ...grant(stood, takeOver), ...withDisplaced(stood, takeOver.displaced) }
          : undefined,
      ),

    displace: async (displace) =>
      write(displace.key, (stood) =>
        isAsSeen(stood, displace) && isAlive(stood, displace.nowMs)
          ? unclaimed({ ...stood, ...withDisplaced(stood, displace.displaced) })
          : undefined,
      ),

    renew: async (renew) =>
      write(renew.key, (stood) => {
        if (!isHeld(stood, renew) || stood.claim.untilMs >= renew.untilMs) return undefined;
        return { ...stood, claim: { ...stood.claim, untilMs: renew.untilMs } };
      }),

    commit: async (commit) =>
      write(commit.key, (stood) => {
        if (!isHeld(stood, commit) || stood.version !== commit.head.version) return undefined;
        if (!isAlive(stood, commit.nowMs)) return undefined;
        return unclaimed({ ...stood, ...committed(stood, commit) });
      }),

    checkpoint: async (checkpoint) =>
      write(checkpoint.key, (stood) => {
        const { kept, revision, untilMs } = checkpoint;
        if (!isHeld(stood, checkpoint) || stood.open?.revision !== revision) return undefined;
        if (stood.claim.untilMs > untilMs) return undefined;
        const { input = "", steps: before = [] } = opened.get(stood.incarnation) ?? {};
        const steps =
          "steps" in kept
            ? [...before, ...kept.steps]
            : before.map((step, n) =>
                n === kept.step ? { ...step, results: kept.results } : step,
              );
        opened.set(stood.incarnation, structuredClone({ input, steps }));
        return {
          ...stood,
          claim: { ...stood.claim, untilMs },
          open: { ...stood.open, steps: steps.length, revision: revision + 1 },
        };
      }),

    release: async ({ keepOpen, ...held }) =>
      write(held.key, (stood) => {
        if (!isHeld(stood, held)) return undefined;
        const { claim: _, ...head } = stood;
        return keepOpen ? head : unclaimed(stood);
      }),

    delete: async ({ key, incarnation, nowMs, ifMatch }) =>
      write(key, (stood) => {
        if (stood?.incarnation !== incarnation || stood.deletedAtSeconds !== undefined)
          return undefined;
        if (ifMatch && !matches(stood, ifMatch)) return undefined;
        const nowSeconds = Math.floor(nowMs / 1000);
        return {
          ...unclaimed(stood),
          deletedAtSeconds: nowSeconds,
          expiresAtSeconds: nowSeconds + TOMBSTONE_SECONDS,
          metadata: {},
          tail: [],
          recent: new Map(),
        };
      }),

    setMetadata: async ({
      key,
      incarnation,
      metadata,
      seenMetadataVersion,
      updatedAt,
      nowMs,
      ifMatch,
    }) =>
      write(key, (stood) => {
        if (stood?.incarnation !== incarnation || !isAlive(stood, nowMs)) return undefined;
        if (stood.metadataVersion !== seenMetadataVersion || (ifMatch && !matches(stood, ifMatch)))
          return undefined;
        return { ...stood, metadata, metadataVersion: seenMetadataVersion + 1, updatedAt };
      }),

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

    findTurn: async ({ incarnation }, turnKey) => records.get(incarnation)?.get(turnKey),

    prepare: async (head, history) => {
      sealedTurns.set(head.incarnation, structuredClone([...history.turns]));
      keepRecords({ key: head, incarnation: head.incarnation }, history.records);
      const version = history.turns.length + 1;
      const bytes = history.turns.reduce((sum, turn) => sum + jsonBytes(turn), 0);
      const counts = { ...head.counts, turns: history.turns.length, bytes };
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
      opened.delete(incarnation);
    },
  };
};

/** As DynamoDB's HEADs have it, only newer turns stand in a HEAD. */
const MAX_TAIL_TURNS = 4;

const claimable = (head: Head, { turnKey, ifMatch, nowMs }: Claim): boolean =>
  isAlive(head, nowMs) && !head.recent.has(turnKey) && (!ifMatch || matches(head, ifMatch));

const isSameTurn = (head: Head, { open }: Claim): boolean =>
  head.open?.turnId === open.turnId && head.open.requestHash === open.requestHash;

const grant = (head: Head, claim: Claim): Head => ({
  ...head,
  fence: head.fence + 1,
  claim: claim.claim,
  open: isSameTurn(head, claim) && head.open ? head.open : { ...claim.open, steps: 0, revision: 0 },
});

const isAsSeen = (
  stood: Head | undefined,
  { seen, displaced }: TakeOver | Displace,
): stood is Head =>
  stood?.incarnation === seen.incarnation &&
  stood.fence === seen.fence &&
  stood.claim?.attempt === seen.claim?.attempt &&
  stood.claim?.untilMs === seen.claim?.untilMs &&
  stood.open?.turnId === seen.open?.turnId &&
  stood.open?.revision === seen.open?.revision &&
  (!displaced?.interrupted || stood.version === seen.version);

const isSameOpen = (stood: Head | undefined, head: Head): boolean =>
  stood?.incarnation === head.incarnation &&
  stood.open?.turnId === head.open?.turnId &&
  stood.open?.requestHash === head.open?.requestHash;

const withDisplaced = (stood: Head, displaced: Displaced | undefined): Partial<Head> =>
  displaced
    ? {
        recent: new Map(stood.recent).set(displaced.turnKey, displaced.record),
        ...(displaced.interrupted ? appended(stood, displaced.interrupted) : {}),
      }
    : {};

const isHeld = (head: Head | undefined, held: Held): head is Head & Required<Pick<Head, "claim">> =>
  head?.incarnation === held.incarnation &&
  head.fence === held.fence &&
  head.claim?.attempt === held.attempt;

const committed = (stood: Head, commit: Commit): Partial<Head> => {
  const { attempt, head, turn, turnKey, requestHash, sealed, supersedes } = commit;
  const { version } = stood;
  const tailFrom = sealed?.to ?? head.tailFrom;
  const kept = [...stood.recent].filter(([, recent]) => recent.version >= tailFrom);
  const { counts, ...next } = appended(
    { ...head, tail: head.tail.slice(tailFrom - head.tailFrom) },
    turn,
  );
  return {
    ...next,
    tailFrom,
    recent: new Map(kept).set(turnKey, { attempt, version, requestHash, outcome: "done" }),
    counts: { ...counts, messages: counts.messages - (supersedes?.messages ?? 0) },
    ...(supersedes
      ? { superseded: [...head.superseded, supersedes.number].toSorted((a, b) => a - b) }
      : {}),
  };
};

const appended = (
  head: Head,
  turn: DoneTurn,
): Pick<Head, "version" | "tail" | "counts" | "updatedAt"> => ({
  version: head.version + 1,
  tail: [...head.tail, turn],
  counts: {
    messages: head.counts.messages + turn.messages.length,
    turns: head.counts.turns + 1,
    bytes: head.counts.bytes + jsonBytes(turn),
  },
  updatedAt: turn.finishedAt,
});

const jsonBytes = (turn: DoneTurn): number => Buffer.byteLength(encodeTurn(turn));

const whole = (head: Head): DoneTurn[] => head.tail.filter((turn) => turn.status === "done");

const unclaimed = ({ claim: _claim, open: _open, ...head }: Head): Head => head;
