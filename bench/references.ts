/** Three usual ways to keep a conversation in DynamoDB, each as one would write it by hand. */
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  paginateQuery,
} from "@aws-sdk/lib-dynamodb";
import type { Message } from "../lib/session/message.ts";

export interface Reference {
  readonly name: string;
  open(place: Place): Conversation;
}

export interface Place {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly pk: string;
}

export interface Conversation {
  /** Stores turns that went before. */
  fill(turns: readonly (readonly Message[])[]): Promise<void>;
  restore(): Promise<Restored>;
  save(turn: NewTurn): Promise<void>;
}

export interface Restored {
  readonly messages: Message[];
  readonly version: number;
}

export interface NewTurn {
  /** The version that the turn was decided on. */
  readonly version: number;
  readonly added: readonly Message[];
  /** The whole conversation with this turn. */
  readonly messages: readonly Message[];
}

interface Codec {
  encode(messages: readonly Message[]): Promise<string | Uint8Array>;
  decode(data: string | Uint8Array): Promise<Message[]>;
}

const json: Codec = {
  encode: async (messages) => JSON.stringify(messages),
  decode: async (data) => parse(data),
};

const gzipped: Codec = {
  encode: async (messages) => promisify(gzip)(JSON.stringify(messages)),
  decode: async (data) => parse(await promisify(gunzip)(data)),
};

const parse = (text: string | Uint8Array): Message[] => JSON.parse(text.toString()) as Message[];

/** One item holds everything. */
const snapshot = (name: string, { encode, decode }: Codec): Reference => ({
  name,
  open: ({ client, tableName: TableName, pk }) => {
    const documents = DynamoDBDocumentClient.from(client);
    const Key = { pk, sk: "SNAPSHOT" };
    const save: Conversation["save"] = async ({ version, messages }) => {
      const Item = { ...Key, version: version + 1, data: await encode(messages) };
      await documents.send(new PutCommand({ TableName, Item, ...unchangedSince(version) }));
    };
    return {
      fill: (turns) => save({ version: 0, added: [], messages: turns.flat() }),
      restore: async () => {
        const command = new GetCommand({ TableName, Key, ConsistentRead: true });
        const item = (await documents.send(command)).Item as SnapshotItem | undefined;
        if (!item) return { messages: [], version: 0 };
        return { messages: await decode(item.data), version: item.version };
      },
      save,
    };
  },
});

interface SnapshotItem {
  readonly version: number;
  readonly data: string | Uint8Array;
}

const unchangedSince = (version: number) =>
  version === 0
    ? { ConditionExpression: "attribute_not_exists(pk)" }
    : {
        ConditionExpression: "version = :version",
        ExpressionAttributeValues: { ":version": version },
      };

/** An item for each turn, all of them read for the next. */
const itemATurn: Reference = {
  name: "item a turn",
  open: ({ client, tableName: TableName, pk }) => {
    const documents = DynamoDBDocumentClient.from(client);
    const save = async (version: number, added: readonly Message[]): Promise<void> => {
      const Item = { pk, sk: String(version + 1).padStart(8, "0"), data: JSON.stringify(added) };
      const ConditionExpression = "attribute_not_exists(pk)";
      await documents.send(new PutCommand({ TableName, Item, ConditionExpression }));
    };
    return {
      fill: async (turns) => {
        const left = turns.entries();
        const worker = async (): Promise<void> => {
          for (const [version, turn] of left) await save(version, turn);
        };
        await Promise.all(Array.from({ length: 8 }, worker));
      },
      restore: async () => {
        const query = {
          TableName,
          KeyConditionExpression: "pk = :pk",
          ExpressionAttributeValues: { ":pk": pk },
          ConsistentRead: true,
        };
        const turns: Message[][] = [];
        for await (const { Items = [] } of paginateQuery({ client: documents }, query)) {
          turns.push(...Items.map(({ data }) => parse(String(data))));
        }
        return { messages: turns.flat(), version: turns.length };
      },
      save: ({ version, added }) => save(version, added),
    };
  },
};

export const REFERENCES: readonly Reference[] = [
  snapshot("whole snapshot, conditional put", json),
  snapshot("gzip snapshot", gzipped),
  itemATurn,
];
