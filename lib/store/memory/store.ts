import { partitionKey } from "../keys.ts";
import {
  type Claim,
  type ClaimResult,
  type Head,
  type Held,
  isAlive,
  matches,
  type SessionKey,
  type SessionStore,
} from "../store.ts";

/** A store for tests and trials: its sessions end with the process. */
export const memorySessionStore = (): SessionStore => {
  const heads = new Map<string, Head>();

  const find = (key: SessionKey): Head | undefined => heads.get(partitionKey(key));

  /** Copies on the way in and out, so that nobody holds a part of the store. */
  const write = (
    key: SessionKey,
    change: (stood: Head | undefined) => Head | undefined,
  ): ClaimResult => {
    const stood = find(key);
    const head = change(stood);
    if (!head) return { applied: false, seen: structuredClone(stood) };
    heads.set(partitionKey(key), structuredClone(head));
    return { applied: true, head: structuredClone(head) };
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

    takeOver: async ({ seen, ...claim }) =>
      write(claim.key, (stood) => {
        const asSeen =
          stood?.incarnation === seen.incarnation &&
          stood.fence === seen.fence &&
          stood.claim?.attempt === seen.claim?.attempt &&
          stood.open?.turnId === seen.open?.turnId;
        return asSeen && claimable(stood, claim) ? grant(stood, claim) : undefined;
      }),

    renew: async (renew) =>
      write(renew.key, (stood) => {
        if (!isHeld(stood, renew) || stood.claim.untilMs >= renew.untilMs) return undefined;
        return { ...stood, claim: { ...stood.claim, untilMs: renew.untilMs } };
      }),

    commit: async (commit) =>
      write(commit.key, (stood) => {
        if (!isHeld(stood, commit) || stood.version !== commit.version) return undefined;
        const { attempt, version, requestHash, tail, counts, updatedAt } = commit;
        const recent = new Map(stood.recent).set(commit.turnKey, { attempt, version, requestHash });
        return { ...unclaimed(stood), version: version + 1, tail, recent, counts, updatedAt };
      }),

    release: async (release) =>
      write(release.key, (stood) => (isHeld(stood, release) ? unclaimed(stood) : undefined)),

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
  };
};

const TOMBSTONE_SECONDS = 86_400;

const claimable = (head: Head, { turnKey, ifMatch, nowMs }: Claim): boolean =>
  isAlive(head, nowMs) && !head.recent.has(turnKey) && (!ifMatch || matches(head, ifMatch));

const isSameTurn = (head: Head, { open }: Claim): boolean =>
  head.open?.turnId === open.turnId && head.open.requestHash === open.requestHash;

const grant = (head: Head, claim: Claim): Head => ({
  ...head,
  fence: head.fence + 1,
  claim: claim.claim,
  open: isSameTurn(head, claim) && head.open ? head.open : claim.open,
});

const isHeld = (head: Head | undefined, held: Held): head is Head & Required<Pick<Head, "claim">> =>
  head?.incarnation === held.incarnation &&
  head.fence === held.fence &&
  head.claim?.attempt === held.attempt;

const unclaimed = ({ claim: _claim, open: _open, ...head }: Head): Head => head;
