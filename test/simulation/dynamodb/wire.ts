/** Documents as DynamoDB's JSON has them. */
import type { Item } from "../../../lib/store/dynamodb/table.ts";
import { refuse, typeOf } from "./documents.ts";

/** One of them is there. */
export interface WireValue {
  readonly S?: string;
  readonly N?: string;
  readonly B?: string;
  readonly BOOL?: boolean;
  readonly NULL?: true;
  readonly L?: readonly WireValue[];
  readonly M?: WireItem;
}

export interface WireItem {
  readonly [name: string]: WireValue;
}

export const fromWire = (item: WireItem): Item =>
  Object.fromEntries(Object.entries(item).map(([name, value]) => [name, valueFrom(value)]));

const valueFrom = ({ S, N, B, BOOL, NULL, L, M }: WireValue): unknown => {
  if (S !== undefined) return S;
  if (N !== undefined) return numberFrom(N);
  if (B !== undefined) return Uint8Array.from(Buffer.from(B, "base64"));
  if (BOOL !== undefined) return BOOL;
  if (NULL) return null;
  if (L) return L.map(valueFrom);
  return M ? fromWire(M) : refuse("a value of a type that isn't simulated");
};

const numberFrom = (text: string): number => {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : refuse(`${text}: only whole, safe numbers`);
};

export const toWire = (item: Item): WireItem =>
  Object.fromEntries(Object.entries(item).map(([name, value]) => [name, wireOf(value)]));

const wireOf = (value: unknown): WireValue => {
  if (value instanceof Uint8Array) return { B: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return { L: value.map(wireOf) };
  const type = typeOf(value);
  if (type === "M") return { M: toWire(value as Item) };
  return { [type]: type === "N" ? String(value) : type === "NULL" ? true : value };
};
