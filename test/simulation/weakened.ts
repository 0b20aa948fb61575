/** The conditions of the protocol, each taken out or made weaker. */
import * as when from "../../lib/store/dynamodb/conditions.ts";
import type { Change } from "../../lib/store/dynamodb/expressions.ts";
import type { Mutant } from "./simulate.ts";

type Kind =
  | "create"
  | "claim"
  | "take-over"
  | "displace"
  | "renew"
  | "checkpoint"
  | "commit"
  | "release"
  | "delete";

/** Which write of a HEAD it is, as far as mutants tell them apart. */
export const kindOf = ({ set = [], remove = [], condition }: Change): Kind | undefined => {
  const isGrant = set.includes("#claim = :claim");
  if (condition.includes(when.LEASE_GROWS)) return "renew";
  if (condition.includes(when.REVISION_UNCHANGED)) return "checkpoint";
  if (condition.includes(when.FENCE_AS_SEEN)) return isGrant ? "take-over" : "displace";
  if (isGrant) return "claim";
  if (set.includes("#tail_from = :tail_from")) return "commit";
  if (set.includes("#deleted_at = :now")) return "delete";
  if (remove.includes("#claim")) return "release";
  return condition.includes(when.DEAD) ? "create" : undefined;
};

const FENCE_ONLY = "#fence = :fence";
const ATTEMPT_ONLY = "#claim.#attempt = :attempt";

/** Conditions of one kind of write, taken out or replaced. */
const weaker = ({ of, out }: Taken): NonNullable<Mutant["table"]> => {
  const changed = (change: Change): Change =>
    kindOf(change) === of
      ? {
          ...change,
          condition: change.condition.flatMap((it) => {
            const instead = out[it];
            return instead === undefined ? it : instead || [];
          }),
        }
      : change;
  return (table) => ({
    ...table,
    update: (key, change) => table.update(key, orAlways(changed(change))),
    change: (key, change) => table.change(key, orAlways(changed(change))),
    putIf: (item, change) => table.putIf(item, orAlways(changed(change))),
  });
};

/** An expression can't be empty. */
const orAlways = (change: Change): Change =>
  change.condition.length > 0
    ? change
    : { ...change, condition: ["(attribute_exists(#pk) OR attribute_not_exists(#pk))"] };

interface Taken {
  readonly of: Kind;
  readonly what: string;
  /** Each with what stands in its place, if anything does. */
  readonly out: Readonly<Record<string, string>>;
  readonly redundant?: string;
}

const NOTHING = "";

/** The attempt is random, and names one runner's try in one life of the session. */
const BY_ATTEMPT = "the attempt is in no other life of the session";
const BY_CLAIM = "whatever changes it ends the claim, or the open turn, that was seen";

const CONDITIONS: readonly Taken[] = [
  {
    of: "create",
    what: "only over a dead session",
    out: { [when.DEAD]: NOTHING },
    redundant: "what was seen dead stays dead",
  },
  {
    of: "create",
    what: "only over the one that was seen",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: "another dead one may be written over too",
  },
  { of: "create", what: "both", out: { [when.DEAD]: NOTHING, [when.SAME_INCARNATION]: NOTHING } },
  { of: "claim", what: "not deleted", out: { [when.NOT_DELETED]: NOTHING } },
  { of: "claim", what: "not expired", out: { [when.NOT_EXPIRED]: "attribute_exists(#pk)" } },
  { of: "claim", what: "the turn not done", out: { [when.TURN_NOT_DONE]: NOTHING } },
  { of: "claim", what: "unclaimed", out: { [when.UNCLAIMED]: NOTHING } },
  { of: "claim", what: "no other open turn", out: { [when.NO_OTHER_OPEN_TURN]: NOTHING } },
  {
    of: "claim",
    what: "the same request",
    out: {
      [when.NO_OTHER_OPEN_TURN]: "(attribute_not_exists(#open) OR #open.#turn_id = :turn_id)",
    },
  },
  {
    of: "take-over",
    what: "not deleted",
    out: { [when.NOT_DELETED]: NOTHING },
    redundant: BY_CLAIM,
  },
  {
    of: "take-over",
    what: "not expired",
    out: { [when.NOT_EXPIRED]: NOTHING },
    redundant: "what was seen alive at a time is alive at that time: expiry never moves",
  },
  {
    of: "take-over",
    what: "the turn not done",
    out: { [when.TURN_NOT_DONE]: NOTHING },
    redundant: BY_CLAIM,
  },
  {
    of: "take-over",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  {
    of: "take-over",
    what: "fence as seen",
    out: { [when.FENCE_AS_SEEN]: "attribute_exists(#fence)" },
    redundant: "a grant changes the claim too",
  },
  {
    of: "take-over",
    what: "claim as seen",
    out: { [when.CLAIM_AS_SEEN]: "attribute_exists(#claim)" },
  },
  {
    of: "take-over",
    what: "no claim as seen",
    out: { [when.NO_CLAIM_AS_SEEN]: NOTHING },
    redundant: "a grant raises the fence",
  },
  {
    of: "take-over",
    what: "fence and claim as seen",
    out: {
      [when.FENCE_AS_SEEN]: "attribute_exists(#fence)",
      [when.CLAIM_AS_SEEN]: NOTHING,
      [when.NO_CLAIM_AS_SEEN]: NOTHING,
    },
  },
  { of: "take-over", what: "open turn as seen", out: { [when.OPEN_AS_SEEN]: NOTHING } },
  {
    of: "take-over",
    what: "revision as seen",
    out: { [when.OPEN_AS_SEEN]: "#open.#turn_id = :seen_turn_id" },
  },
  {
    of: "take-over",
    what: "no open turn as seen",
    out: { [when.NO_OPEN_AS_SEEN]: NOTHING },
    redundant: "no claim is without one",
  },
  {
    of: "take-over",
    what: "version unchanged, of an interruption",
    out: { [when.VERSION_UNCHANGED]: NOTHING },
    redundant: BY_CLAIM,
  },
  {
    of: "displace",
    what: "not deleted",
    out: { [when.NOT_DELETED]: NOTHING },
    redundant: BY_CLAIM,
  },
  { of: "displace", what: "not expired", out: { [when.NOT_EXPIRED]: NOTHING } },
  {
    of: "displace",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  {
    of: "displace",
    what: "claim as seen",
    out: { [when.CLAIM_AS_SEEN]: NOTHING },
    redundant: "the fence and the open turn tell",
  },
  {
    of: "displace",
    what: "open turn as seen",
    out: { [when.OPEN_AS_SEEN]: NOTHING },
    redundant: "another turn has another claim, or none",
  },
  {
    of: "renew",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  {
    of: "renew",
    what: "held: the fence",
    out: { [when.HELD]: ATTEMPT_ONLY },
    redundant: "a renewal changes only how long others wait",
  },
  {
    of: "renew",
    what: "held: the attempt",
    out: { [when.HELD]: FENCE_ONLY },
    redundant: "a fence is given once in a life of the session",
  },
  {
    of: "renew",
    what: "the lease never shrinks",
    out: { [when.LEASE_GROWS]: "attribute_exists(#claim)" },
  },
  {
    of: "checkpoint",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  { of: "checkpoint", what: "held", out: { [when.HELD]: NOTHING } },
  {
    of: "checkpoint",
    what: "held: the fence",
    out: { [when.HELD]: ATTEMPT_ONLY },
    redundant: "only a claim that was sent twice has another fence, and its turn is the same",
  },
  {
    of: "checkpoint",
    what: "held: the attempt",
    out: { [when.HELD]: FENCE_ONLY },
    redundant: "a fence is given once in a life of the session",
  },
  { of: "checkpoint", what: "revision unchanged", out: { [when.REVISION_UNCHANGED]: NOTHING } },
  { of: "checkpoint", what: "the lease never shrinks", out: { [when.LEASE_NOT_SHORTER]: NOTHING } },
  {
    of: "commit",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  { of: "commit", what: "held", out: { [when.HELD]: NOTHING } },
  {
    of: "commit",
    what: "held: the fence",
    out: { [when.HELD]: ATTEMPT_ONLY },
    redundant: "only a claim that was sent twice has another fence, and its turn is the same",
  },
  {
    of: "commit",
    what: "held: the attempt",
    out: { [when.HELD]: FENCE_ONLY },
    redundant: "a fence is given once in a life of the session, and a commit counts the version",
  },
  {
    of: "commit",
    what: "version unchanged",
    out: { [when.VERSION_UNCHANGED]: NOTHING },
    redundant: "the claim ends with whatever changes it",
  },
  {
    of: "commit",
    what: "the attempt, and version unchanged",
    out: { [when.HELD]: FENCE_ONLY, [when.VERSION_UNCHANGED]: NOTHING },
  },
  { of: "commit", what: "not expired", out: { [when.NOT_EXPIRED]: NOTHING } },
  {
    of: "release",
    what: "the same incarnation",
    out: { [when.SAME_INCARNATION]: NOTHING },
    redundant: BY_ATTEMPT,
  },
  { of: "release", what: "held", out: { [when.HELD]: NOTHING } },
  {
    of: "release",
    what: "held: the fence",
    out: { [when.HELD]: ATTEMPT_ONLY },
    redundant: "only a claim that was sent twice has another fence, and nobody runs it",
  },
  {
    of: "release",
    what: "held: the attempt",
    out: { [when.HELD]: FENCE_ONLY },
    redundant: "a fence is given once in a life of the session",
  },
  { of: "delete", what: "the same incarnation", out: { [when.SAME_INCARNATION]: NOTHING } },
  {
    of: "delete",
    what: "not deleted",
    out: { [when.NOT_DELETED]: NOTHING },
    redundant: "it would only be deleted again",
  },
];

export const WEAKENED: readonly Mutant[] = CONDITIONS.map((taken) => ({
  name: `${taken.of}: ${taken.what}`,
  table: weaker(taken),
  ...(taken.redundant ? { redundant: taken.redundant } : {}),
}));
