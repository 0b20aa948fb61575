import type { JsonObject } from "../session/json.ts";
import { formatTimestamp, parseTimestamp } from "../session/timestamp.ts";
import type { Head, SessionKey } from "../store/head.ts";
import { MetadataTooLargeError } from "./errors.ts";

/** Of JSON. HEAD carries the metadata, and is paid for by its size at each claim and commit. */
export const MAX_METADATA_BYTES = 64 * 1024;

export interface NewHead {
  readonly key: SessionKey;
  readonly incarnation: string;
  readonly createdAt: string;
  readonly metadata?: JsonObject;
  readonly lifetimeSeconds: number;
  readonly nowMs: number;
}

/**
 * A session as it is first stored, without history, and with no one at work on it.
 *
 * @throws {MetadataTooLargeError}
 */
export const newHead = (fields: NewHead): Head => {
  const { key, incarnation, createdAt, metadata = {}, lifetimeSeconds, nowMs } = fields;
  return {
    ...key,
    incarnation,
    version: 1,
    metadataVersion: 1,
    fence: 0,
    createdAt,
    updatedAt: formatTimestamp(nowMs),
    expiresAtSeconds: expiresAtSeconds(createdAt, lifetimeSeconds),
    metadata: checkMetadataSize(metadata),
    counts: { messages: 0, turns: 0, bytes: 0 },
    tail: [],
    tailFrom: 1,
    superseded: [],
    recent: new Map(),
  };
};

/** A session goes on from the fence of the dead one it takes the place of: what a late runner of that one still does is refused. */
export const fenceAfter = (over: Head | undefined): number => over?.fence ?? 0;

export const checkMetadataSize = (metadata: JsonObject): JsonObject => {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes > MAX_METADATA_BYTES) throw new MetadataTooLargeError(bytes, MAX_METADATA_BYTES);
  return metadata;
};

/** Whole seconds since the epoch. It follows from `created_at` alone, and so never moves. */
export const expiresAtSeconds = (createdAt: string, lifetimeSeconds: number): number =>
  Math.floor(parseTimestamp(createdAt, "created_at") / 1000) + lifetimeSeconds;
