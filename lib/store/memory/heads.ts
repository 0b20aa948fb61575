/**
 * What each write makes of the HEAD that stands: the next one, or nothing where its condition
 * doesn't hold. The same conditions as those of `dynamodb/conditions.ts`, in plain code.
 */
import type { DoneTurn } from "../../session/turn.ts";
import { countsWith, supersededWith } from "../counts.ts";
import { type Head, isAlive, matches } from "../head.ts";
import {
  type Checkpoint,
  type Claim,
  type Commit,
  type Create,
  type Delete,
  type Displace,
  type Displaced,
  type Held,
  type Release,
  type Renew,
  type Sealed,
  type SetMetadata,
  type TakeOver,
  TOMBSTONE_SECONDS,
} from "../store.ts";

export type Change = (stood: Head | undefined) => Head | undefined;

export const created =
  ({ head, over, nowMs }: Create): Change =>
  (stood) => {
    const overSeen = stood && stood.incarnation === over?.incarnation && !isAlive(stood, nowMs);
    return !stood || overSeen ? head : undefined;
  };

export const claimed =
  (claim: Claim): Change =>
  (stood) => {
    if (!stood || !isClaimable(stood, claim) || stood.claim) return undefined;
    return stood.open && !isSameTurn(stood, claim) ? undefined : grant(stood, claim);
  };

export const takenOver =
  (takeOver: TakeOver): Change =>
  (stood) =>
    isAsSeen(stood, takeOver) && isClaimable(stood, takeOver)
      ? { ...grant(stood, takeOver), ...withDisplaced(stood, takeOver.displaced) }
      : undefined;

export const displaced =
  (displace: Displace): Change =>
  (stood) =>
    isAsSeen(stood, displace) && isAlive(stood, displace.nowMs)
      ? unclaimed({ ...stood, ...withDisplaced(stood, displace.displaced) })
      : undefined;

export const renewed =
  (renew: Renew): Change =>
  (stood) =>
    isHeld(stood, renew) && stood.claim.untilMs < renew.untilMs
      ? { ...stood, claim: { ...stood.claim, untilMs: renew.untilMs } }
      : undefined;

/** @param steps how many are kept then */
export const checkpointed =
  (checkpoint: Checkpoint, steps: number): Change =>
  (stood) => {
    const { revision, untilMs } = checkpoint;
    if (!isHeld(stood, checkpoint) || stood.open?.revision !== revision) return undefined;
    if (stood.claim.untilMs > untilMs) return undefined;
    return {
      ...stood,
      claim: { ...stood.claim, untilMs },
      open: { ...stood.open, steps, revision: revision + 1 },
    };
  };

export const committed =
  (commit: Commit): Change =>
  (stood) => {
    if (!isHeld(stood, commit) || stood.version !== commit.head.version) return undefined;
    if (!isAlive(stood, commit.nowMs)) return undefined;
    const { attempt, head, turn, turnKey, requestHash, sealed, supersedes } = commit;
    const { version } = stood;
    const { recent, ...more } = appended(stood, turn, sealed);
    return unclaimed({
      ...stood,
      ...more,
      recent: new Map(recent).set(turnKey, { attempt, version, requestHash, outcome: "done" }),
      counts: countsWith(head, turn, supersedes),
      ...(supersedes ? { superseded: supersededWith(head, supersedes) } : {}),
    });
  };

export const released =
  ({ keepOpen, ...held }: Release): Change =>
  (stood) => {
    if (!isHeld(stood, held)) return undefined;
    const { claim: _, ...head } = stood;
    return keepOpen ? head : unclaimed(stood);
  };

export const deleted =
  ({ incarnation, nowMs, ifMatch }: Delete): Change =>
  (stood) => {
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
  };

export const withMetadata =
  ({
    incarnation,
    metadata,
    seenMetadataVersion,
    updatedAt,
    nowMs,
    ifMatch,
  }: SetMetadata): Change =>
  (stood) => {
    if (stood?.incarnation !== incarnation || !isAlive(stood, nowMs)) return undefined;
    if (stood.metadataVersion !== seenMetadataVersion) return undefined;
    if (ifMatch && !matches(stood, ifMatch)) return undefined;
    return { ...stood, metadata, metadataVersion: seenMetadataVersion + 1, updatedAt };
  };

export const isSameOpen = (stood: Head | undefined, head: Head): boolean =>
  stood?.incarnation === head.incarnation &&
  stood.open?.turnId === head.open?.turnId &&
  stood.open?.requestHash === head.open?.requestHash;

const isClaimable = (head: Head, { turnKey, incarnation, ifMatch, nowMs }: Claim): boolean =>
  isAlive(head, nowMs) &&
  (incarnation === undefined || head.incarnation === incarnation) &&
  !head.recent.has(turnKey) &&
  (!ifMatch || matches(head, ifMatch));

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

const isHeld = (head: Head | undefined, held: Held): head is Head & Required<Pick<Head, "claim">> =>
  head?.incarnation === held.incarnation &&
  head.fence === held.fence &&
  head.claim?.attempt === held.attempt;

const withDisplaced = (stood: Head, displaced: Displaced | undefined): Partial<Head> => {
  if (!displaced) return {};
  const { turnKey, record, interrupted, sealed } = displaced;
  const more = interrupted ? appended(stood, interrupted, sealed) : { recent: stood.recent };
  return { ...more, recent: new Map(more.recent).set(turnKey, record) };
};

const appended = (
  { version, tail, tailFrom, recent, counts }: Head,
  turn: DoneTurn,
  sealed: Sealed | undefined,
): Pick<Head, "version" | "tail" | "tailFrom" | "recent" | "counts" | "updatedAt"> => {
  const from = sealed?.to ?? tailFrom;
  return {
    version: version + 1,
    tail: [...tail.slice(from - tailFrom), turn],
    tailFrom: from,
    recent: new Map([...recent].filter(([, record]) => record.version >= from)),
    counts: countsWith({ counts }, turn),
    updatedAt: turn.finishedAt,
  };
};

const unclaimed = ({ claim: _claim, open: _open, ...head }: Head): Head => head;
