/**
 * The conditions of the turn protocol, each with what breaks without it. `#name` stands for the
 * attribute `name`, `:name` for a value that the write gives.
 */

/** An item that nobody wrote: two creators of one id can't both win. */
export const NOTHING_THERE = "attribute_not_exists(#pk)";

/** Every request after the first carries the incarnation, or an old one would write into a recreated session. */
export const SAME_INCARNATION = "#incarnation = :incarnation";

/** Deleted is final for an incarnation: a tombstone takes no write. */
export const NOT_DELETED = "attribute_not_exists(#deleted_at)";

/** An expired session is invisible at once; the table's TTL removes the item days later, or never. */
export const NOT_EXPIRED = "#expires_at > :now";

/** Only a dead session may be written over. */
export const DEAD = "(attribute_exists(#deleted_at) OR #expires_at <= :now)";

/** Checked here and not by the client, or a finished turn would run again beside its own commit. */
export const TURN_NOT_DONE = "attribute_not_exists(#recent.#turn_key)";

/** One runner at a time. */
export const UNCLAIMED = "attribute_not_exists(#claim)";

/** The same turn id with another input is another turn; it takes the place of this one by `takeOver` only. */
export const NO_OTHER_OPEN_TURN =
  "(attribute_not_exists(#open) OR (#open.#turn_id = :turn_id AND #open.#request_hash = :request_hash))";

/** Claims granted since they were seen would be lost: `fence` counts every one. */
export const FENCE_AS_SEEN = "#fence = :seen_fence";

/**
 * A claim released, and granted again to nobody, leaves the fence as it was: the attempt tells. One
 * that was extended since it was seen is alive.
 */
export const CLAIM_AS_SEEN =
  "#claim.#attempt = :seen_attempt AND #claim.#until_ms = :seen_until_ms";
export const NO_CLAIM_AS_SEEN = UNCLAIMED;

/** A step or a result that was kept since then would be lost, or its effect repeated: `revision` counts them. */
export const OPEN_AS_SEEN = "#open.#turn_id = :seen_turn_id AND #open.#revision = :seen_revision";
export const NO_OPEN_AS_SEEN = "attribute_not_exists(#open)";

/** The claim is the runner's own. The fence alone would let a doubled claim pass, the attempt alone a late one. */
export const HELD = "#fence = :fence AND #claim.#attempt = :attempt";

/** A checkpoint is written once: one that was sent twice, or comes late, must not repeat a step. */
export const REVISION_UNCHANGED = "#open.#revision = :revision";

/** The history is the one that the turn was decided on. */
export const VERSION_UNCHANGED = "#version = :version";

/** A heartbeat that arrives late must not shorten the lease. */
export const LEASE_GROWS = "#claim.#until_ms < :until_ms";

/** Nor must a checkpoint that arrives late, behind a heartbeat. */
export const LEASE_NOT_SHORTER = "#claim.#until_ms <= :until_ms";

/** Two merges at once must not lose one. */
export const METADATA_AS_SEEN = "#metadata_version = :seen_metadata_version";

/** What the caller asked for with `If-Match`. */
export const VERSION_MATCHES = "#version = :if_version";
export const METADATA_VERSION_MATCHES = "#metadata_version = :if_metadata_version";

/** What was renewed or recreated since it was listed must not go; the item itself knows, whatever was listed. */
export const EXPIRED = "#expires_at <= :now";

/** A turn that began in time ends as it began, and what it still writes has a HEAD by which cleanup finds it. */
export const NO_LEASE_RUNS = "(attribute_not_exists(#claim) OR #claim.#until_ms <= :now_ms)";

/** Of several that delete an item, one has done it. */
export const STILL_THERE = "attribute_exists(#pk)";
