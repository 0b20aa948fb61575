/** Content that is too large for the item that names it, cut by bytes into items of its own. */
import { type Content, toBytes } from "./content.ts";
import { inParallel } from "./parallel.ts";
import type { Table } from "./requests.ts";
import { type Item, MAX_ITEM_BYTES } from "./table.ts";

/** Room for key and names beside the content of an item. */
const PIECE_BYTES = MAX_ITEM_BYTES - 2500;

/** Each of up to 400 KB: more would only wait for one another, and the last for too long. */
const WRITES_AT_ONCE = 4;

export const split = (content: Content): Uint8Array[] => {
  const bytes = toBytes(content);
  return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, n) =>
    bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES),
  );
};

export const writePieces = (
  table: Table,
  pieces: readonly Uint8Array[],
  { keyOf, expiresAt }: { readonly keyOf: (index: number) => Item; readonly expiresAt: number },
): Promise<void> =>
  inParallel(pieces.entries(), WRITES_AT_ONCE, ([index, data]) =>
    table.put({ ...keyOf(index), data, expires_at: expiresAt }),
  );

/** Pieces never change: an eventually consistent read gives the right one or none. */
export const readPiece = async (table: Table, key: Item): Promise<Uint8Array | undefined> => {
  for (const consistent of [false, true]) {
    const data = (await table.read(key, consistent))?.["data"];
    if (data instanceof Uint8Array) return data;
  }
  return undefined;
};
