/** Where a sweep of the expiry index stopped, shard by shard, as text that its reader passes back. */
import { InvalidInputError } from "../../session/invalid.ts";
import type { Item } from "./table.ts";
import { EXPIRY_SHARDS, TABLE } from "./table.ts";

/** In one shard: before its first item, behind this one, or behind the last. */
export type Position = "start" | "done" | Item;

export const encodeResume = (positions: readonly Position[]): string => {
  const places = positions.map((position) =>
    typeof position === "string"
      ? position
      : [position[TABLE.partitionKey], position[TABLE.sortKey], position[TABLE.ttlAttribute]],
  );
  return Buffer.from(JSON.stringify(places)).toString("base64url");
};

/** @throws {InvalidInputError} */
export const decodeResume = (text: string, now: number): Position[] => {
  const positions = parse(text);
  if (!Array.isArray(positions) || positions.length !== EXPIRY_SHARDS) throw refusal();
  return positions.map((place: unknown, shard) => {
    if (place === "start" || place === "done") return place;
    if (!Array.isArray(place) || place.length !== 3) throw refusal();
    const fields: readonly unknown[] = place;
    const [pk, sk, expiresAt] = fields;
    // DynamoDB would refuse a place that the sweep can't have reached.
    const isReached = Number.isSafeInteger(expiresAt) && Number(expiresAt) <= now;
    if (!isName(pk) || !isName(sk) || !isReached) throw refusal();
    return {
      [TABLE.partitionKey]: pk,
      [TABLE.sortKey]: sk,
      [TABLE.ttlAttribute]: expiresAt,
      expiry_shard: shard,
    };
  });
};

const isName = (value: unknown): boolean => typeof value === "string" && value !== "";

const parse = (text: string): unknown => {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString());
  } catch (cause) {
    throw refusal({ cause });
  }
};

const refusal = (options?: ErrorOptions): InvalidInputError =>
  new InvalidInputError(
    [{ path: "resume", message: "must be the `resume` of an earlier report" }],
    options,
  );
