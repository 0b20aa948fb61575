/** The names that the code and the table's definition in `serverless.yml` share; a test ties the two. */
export const TABLE = {
  partitionKey: "pk",
  sortKey: "sk",
  ttlAttribute: "expires_at",
  indexes: { byOwner: "by_owner", byExpiry: "by_expiry" },
} as const;

/** Partitions of the expiry index, so that one day's sessions don't share one. One hex digit names a shard. */
export const EXPIRY_SHARDS = 16;

/** Of an item, attribute names included: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html */
export const MAX_ITEM_BYTES = 400 * 1024;

/** Whatever belongs to a HEAD outlives it by this, so that no clock can see the HEAD alive and a part of it gone. */
export const AFTER_HEAD_SECONDS = 86_400;

/** An item, or a part of it, as the document client has it. */
export type Item = Record<string, unknown>;
