import { createHash } from "node:crypto";
import { invalid } from "../session/invalid.ts";
import type { SessionKey } from "./head.ts";

/** Percent-encoded, an owner takes at most three bytes for one: with a session id this stays under DynamoDB's 2,048 bytes. */
export const MAX_OWNER_BYTES = 512;

/**
 * One string for each pair of owner and session id. Encoded owners and session ids hold no "#", so
 * no two pairs give the same.
 */
export const partitionKey = ({ owner, sessionId }: SessionKey): string =>
  `${encodeURIComponent(owner)}#${sessionId}`;

/** @throws {InvalidInputError} for an owner that can't be part of a key */
export const checkOwner = (value: unknown, path: string): string => {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw invalid(path, "must be well-formed text, and not empty");
  }
  if (new TextEncoder().encode(value).length > MAX_OWNER_BYTES) {
    throw invalid(path, `must be at most ${MAX_OWNER_BYTES} bytes`);
  }
  return value;
};

/** Stands for a turn id where it is a key: 22 characters, whatever the id's length and letters. */
export const turnKey = (turnId: string): string => digest(turnId).toString("base64url");

/** 32 hex digits: half of a SHA-256. */
export const hash = (text: string): string => digest(text).toString("hex");

/** A turn id that a caller gave may come again, and so is kept for recognition; one of our own can't. */
export const isCallersTurnId = (turnId: string): boolean => !turnId.startsWith(OWN_TURN_ID_MARK);

export const OWN_TURN_ID_MARK = "~";

const digest = (text: string): Buffer => createHash("sha256").update(text).digest().subarray(0, 16);
