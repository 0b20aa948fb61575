/** The names that the code and the table's definition in `serverless.yml` share; a test ties the two. */
export const TABLE = {
  partitionKey: "pk",
  sortKey: "sk",
  ttlAttribute: "expires_at",
  indexes: { byOwner: "by_owner", byExpiry: "by_expiry" },
} as const;

/** The sort key of the item that is a session's head. */
export const HEAD_KEY = "HEAD";

/** Partitions of the expiry index, so that one day's sessions don't share one. One hex digit names a shard. */
export const EXPIRY_SHARDS = 16;

/** Of an item, attribute names included: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html */
export const MAX_ITEM_BYTES = 400 * 1024;
