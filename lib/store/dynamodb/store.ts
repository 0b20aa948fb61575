/**
 * Each method is one request with its condition, and one consistent read where the condition failed
 * and the engine didn't say what stands there.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  UpdateCommand,
  type UpdateCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { encodeTurns } from "../codec.ts";
import { SessionTooLargeError } from "../errors.ts";
import type {
  Claim,
  ClaimResult,
  Head,
  Held,
  IfMatch,
  Refused,
  SessionKey,
  SessionStore,
  WriteResult,
} from "../store.ts";
import * as when from "./conditions.ts";
import { numbersAsWritten, refusedItem, translate } from "./failures.ts";
import {
  decodeHead,
  encodeClaim,
  encodeHead,
  encodeOpen,
  encodeRecent,
  type Item,
  itemKey,
} from "./item.ts";
import { MAX_ITEM_BYTES } from "./table.ts";

export interface DynamoSessionStoreOptions {
  /** Its timeouts and tries bound every operation: see `dynamoClient`. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
}

export const dynamoSessionStore = ({
  client,
  tableName,
}: DynamoSessionStoreOptions): SessionStore => {
  const documents = DynamoDBDocumentClient.from(client, { unmarshallOptions: numbersAsWritten() });

  const read = async (key: SessionKey): Promise<Head | undefined> => {
    const get = new GetCommand({ TableName: tableName, Key: itemKey(key), ConsistentRead: true });
    const { Item: item } = await documents.send(get).catch(translate);
    return item && decodeHead(item);
  };

  const refused = async (key: SessionKey, error: unknown): Promise<Refused> => {
    const item = refusedItem(error);
    return { applied: false, seen: item ? decodeHead(item) : await read(key) };
  };

  const update = async (key: SessionKey, change: Change): Promise<WriteResult> => {
    const command = new UpdateCommand({
      TableName: tableName,
      Key: itemKey(key),
      ...expressions(change),
    });
    try {
      await documents.send(command);
    } catch (error) {
      return refused(key, error);
    }
    return { applied: true };
  };

  /** As `update`, and reads the session in the same request. */
  const grant = async (key: SessionKey, change: Change): Promise<ClaimResult> => {
    const update = { TableName: tableName, Key: itemKey(key), ...expressions(change) };
    let item: Item | undefined;
    try {
      const command = new UpdateCommand({ ...update, ReturnValues: "ALL_NEW" });
      item = (await documents.send(command)).Attributes;
    } catch (error) {
      return refused(key, error);
    }
    return { applied: true, head: decodeHead(item ?? {}) };
  };

  return {
    read,

    create: async ({ head, over, nowMs }) => {
      const condition = over ? [when.SAME_INCARNATION, when.DEAD] : [when.NOTHING_THERE];
      const values = over ? { incarnation: over.incarnation, now: seconds(nowMs) } : {};
      const { UpdateExpression: _none, ...put } = expressions({ condition, values });
      try {
        await documents.send(
          new PutCommand({ TableName: tableName, Item: encodeHead(head), ...put }),
        );
      } catch (error) {
        return refused(head, error);
      }
      return { applied: true };
    },

    claim: (claim) =>
      grant(claim.key, {
        set: [...GRANT, "#open = if_not_exists(#open, :open)"],
        condition: [...claimable(claim.ifMatch), when.UNCLAIMED, when.NO_OTHER_OPEN_TURN],
        values: claimValues(claim),
        turnKey: claim.turnKey,
      }),

    takeOver: ({ seen, ...claim }) => {
      const resumes =
        seen.open?.turnId === claim.open.turnId && seen.open.requestHash === claim.open.requestHash;
      return grant(claim.key, {
        set: resumes ? GRANT : [...GRANT, "#open = :open"],
        condition: [
          ...claimable(claim.ifMatch),
          when.SAME_INCARNATION,
          when.FENCE_AS_SEEN,
          seen.claim ? when.CLAIM_AS_SEEN : when.NO_CLAIM_AS_SEEN,
          seen.open ? when.OPEN_AS_SEEN : when.NO_OPEN_AS_SEEN,
        ],
        values: {
          ...claimValues(claim),
          incarnation: seen.incarnation,
          seen_fence: seen.fence,
          seen_attempt: seen.claim?.attempt,
          seen_turn_id: seen.open?.turnId,
        },
        turnKey: claim.turnKey,
      });
    },

    renew: ({ key, untilMs, ...held }) =>
      update(key, {
        set: ["#claim.#until_ms = :until_ms"],
        condition: [when.SAME_INCARNATION, when.HELD, when.LEASE_GROWS],
        values: { ...heldValues(held), until_ms: untilMs },
      }),

    commit: async ({ key, turnKey, version, requestHash, tail, counts, updatedAt, ...held }) =>
      update(key, {
        set: [
          "#version = #version + :one",
          "#tail = :tail",
          "#recent.#turn_key = :recent",
          "#updated_at = :updated_at",
          "#message_count = :message_count",
          "#turn_count = :turn_count",
          "#size_bytes = :size_bytes",
        ],
        remove: ["#claim", "#open"],
        condition: [when.SAME_INCARNATION, when.HELD, when.VERSION_UNCHANGED],
        values: {
          ...heldValues(held),
          version,
          one: 1,
          tail: fitting(encodeTurns(tail)),
          recent: encodeRecent({ attempt: held.attempt, version, requestHash }),
          updated_at: updatedAt,
          message_count: counts.messages,
          turn_count: counts.turns,
          size_bytes: counts.bytes,
        },
        turnKey,
      }),

    release: ({ key, ...held }) =>
      update(key, {
        remove: ["#claim", "#open"],
        condition: [when.SAME_INCARNATION, when.HELD],
        values: heldValues(held),
      }),

    delete: ({ key, incarnation, nowMs, ifMatch }) =>
      update(key, {
        set: [
          "#deleted_at = :now",
          "#expires_at = :tombstone_until",
          "#metadata = :no_metadata",
          "#tail = :no_turns",
          "#recent = :none",
        ],
        // Without its created_key the session leaves the owner's list.
        remove: ["#claim", "#open", "#created_key"],
        condition: [when.SAME_INCARNATION, when.NOT_DELETED, ...matching(ifMatch)],
        values: {
          ...ifMatchValues(ifMatch),
          incarnation,
          now: seconds(nowMs),
          tombstone_until: seconds(nowMs) + TOMBSTONE_SECONDS,
          no_metadata: "{}",
          no_turns: encodeTurns([]),
          none: {},
        },
      }),
  };
};

/** Longer than any request of the deleted incarnation can be on its way. */
const TOMBSTONE_SECONDS = 86_400;

interface Change {
  readonly set?: readonly string[];
  readonly remove?: readonly string[];
  readonly condition: readonly string[];
  /** Those that no expression names, and undefined ones, are left out. */
  readonly values: Item;
  readonly turnKey?: string;
}

/** `#name` is the attribute of that name; `#turn_key` is the key of the turn in question. */
const expressions = ({ set = [], remove = [], condition, values, turnKey }: Change) => {
  const clauses = [
    ...(set.length ? [`SET ${set.join(", ")}`] : []),
    ...(remove.length ? [`REMOVE ${remove.join(", ")}`] : []),
  ];
  const text = [...clauses, ...condition].join(" ");
  const names = [...new Set(text.match(/#\w+/g))];
  const used: Item = Object.fromEntries(
    [...new Set(text.match(/:\w+/g))].map((name): [string, unknown] => [
      name,
      values[name.slice(1)],
    ]),
  );
  return {
    UpdateExpression: clauses.join(" "),
    ConditionExpression: condition.join(" AND "),
    ExpressionAttributeNames: Object.fromEntries(
      names.map((name) => [name, name === "#turn_key" ? String(turnKey) : name.slice(1)]),
    ),
    ...(Object.keys(used).length ? { ExpressionAttributeValues: used } : {}),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  } satisfies Partial<UpdateCommandInput>;
};

const GRANT = ["#claim = :claim", "#fence = #fence + :one"];

const claimable = (ifMatch: IfMatch | undefined): string[] => [
  when.NOT_DELETED,
  when.NOT_EXPIRED,
  when.TURN_NOT_DONE,
  ...matching(ifMatch),
];

const claimValues = ({ claim, open, ifMatch, nowMs }: Omit<Claim, "key" | "turnKey">): Item => ({
  ...ifMatchValues(ifMatch),
  one: 1,
  now: seconds(nowMs),
  claim: encodeClaim(claim),
  open: encodeOpen(open),
  turn_id: open.turnId,
  request_hash: open.requestHash,
});

const matching = (ifMatch: IfMatch | undefined): string[] => [
  ...(ifMatch ? [when.VERSION_MATCHES] : []),
  ...(ifMatch?.metadataVersion === undefined ? [] : [when.METADATA_VERSION_MATCHES]),
];

const ifMatchValues = (ifMatch: IfMatch | undefined): Item => ({
  if_version: ifMatch?.version,
  if_metadata_version: ifMatch?.metadataVersion,
});

const heldValues = ({ incarnation, fence, attempt }: Omit<Held, "key">): Item => ({
  incarnation,
  fence,
  attempt,
});

const seconds = (epochMs: number): number => Math.floor(epochMs / 1000);

/** A request with more than the item can hold isn't worth sending; DynamoDB itself refuses what is only just too large. */
const fitting = (tail: string): string => {
  if (Buffer.byteLength(tail) > MAX_ITEM_BYTES) throw new SessionTooLargeError();
  return tail;
};
