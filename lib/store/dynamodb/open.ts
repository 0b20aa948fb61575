/**
 * What a turn keeps while it runs: its input, and the steps that it has done. Small ones stand in
 * HEAD; larger ones lie in items of their own, which are written before the HEAD that names them.
 * The input is the exception: its turn's claim names it first, since only the claim's answer tells
 * the incarnation. Its name is its content's hash, so whoever tries the turn writes the same.
 */
import { childPath, invalid } from "../../session/invalid.ts";
import type { OpenTurn, TurnStep } from "../../session/turn.ts";
import { decodeResults, decodeStep, encodeStep, reading } from "../codec.ts";
import { DamagedSessionError } from "../errors.ts";
import type { Head, WholeOpenTurn } from "../head.ts";
import type { Checkpoint } from "../store.ts";
import { heldValues, OPEN_NAMES } from "./commit.ts";
import * as when from "./conditions.ts";
import { type Content, contentBytes, decodeContent, encodeContent } from "./content.ts";
import type { Change } from "./expressions.ts";
import { Fields } from "./fields.ts";
import { MAX_OPEN_INLINE_BYTES } from "./item.ts";
import { afterHead, headKey, openPartKey, placeOf, short } from "./keys.ts";
import { readPiece, split, writePieces } from "./pieces.ts";
import type { Table } from "./requests.ts";
import type { Item } from "./table.ts";

export interface OpenTurns {
  saveInput(head: Head, input: string): Promise<void>;
  read(head: Head): Promise<WholeOpenTurn | undefined>;
  /** Writes what is too large for HEAD, and gives the change that names it. */
  checkpoint(write: Checkpoint): Promise<Change>;
}

export const dynamoOpenTurns = (table: Table): OpenTurns => {
  const writeNamed = async (head: Head, name: string, content: Content): Promise<number> => {
    const pieces = split(content);
    const { version: number } = head;
    await writePieces(table, pieces, {
      keyOf: (index) => openPartKey(placeOf(head), { number, name, index }),
      expiresAt: afterHead(head),
    });
    return pieces.length;
  };

  const readNamed = async (head: Head, name: string, count: number): Promise<string> => {
    const { version: number } = head;
    if (!isCount(count)) throw invalid(name, `can't have ${count} pieces`);
    const pieces = await Promise.all(
      Array.from({ length: count }, (_, index) =>
        readPiece(table, openPartKey(placeOf(head), { number, name, index })),
      ),
    );
    const found = pieces.filter((piece) => piece !== undefined);
    if (found.length < count) throw new DamagedSessionError(`${where(head)}: ${name} is missing`);
    return decodeContent(Buffer.concat(found), name);
  };

  const saveInput: OpenTurns["saveInput"] = async (head, input) => {
    const content = encodeContent(input);
    if (head.open && contentBytes(content) > MAX_OPEN_INLINE_BYTES) {
      await writeNamed(head, inputName(head.open), content);
    }
  };

  /** As HEAD takes it: the content, or where it lies. */
  const placed = async (head: Head, name: string, text: string): Promise<Content | Item> => {
    const content = encodeContent(text);
    if (contentBytes(content) <= MAX_OPEN_INLINE_BYTES) return content;
    return { p: name, n: await writeNamed(head, name, content) };
  };

  const textOf = async (head: Head, value: unknown, path: string): Promise<string> => {
    if (typeof value === "string" || value instanceof Uint8Array) return decodeContent(value, path);
    const named = new Fields(value, path);
    return readNamed(head, named.text("p"), named.number("n"));
  };

  const stepOf = async (head: Head, value: unknown, path: string): Promise<TurnStep> => {
    const fields = new Fields(value, path);
    const [message, results] = [childPath(path, "m"), childPath(path, "x")];
    const step = decodeStep(await textOf(head, fields.value("m"), message), message);
    const calls = step.message.toolCalls;
    if (!fields.has("x")) return { ...step, results: calls.map(() => null) };
    const kept = decodeResults(await textOf(head, fields.value("x"), results), results);
    if (kept.length !== calls.length) {
      throw invalid(results, `has ${kept.length} results for ${calls.length} tool calls`);
    }
    return { ...step, results: kept };
  };

  const read: OpenTurns["read"] = async (head) => {
    const item = await table.read(headKey(head));
    return item && wholeOf(head, new Fields(item, "")).catch(damaged(head));
  };

  const wholeOf = async (head: Head, fields: Fields): Promise<WholeOpenTurn | undefined> => {
    if (!head.open || fields.id("incarnation") !== head.incarnation || !fields.has("open"))
      return undefined;
    const { revision, ...open } = head.open;
    const stored = fields.fields("open");
    const isSame = stored.text("t") === open.turnId && stored.id("h") === open.requestHash;
    if (!isSame || stored.number("r") !== revision) return undefined;
    const [input, steps] = await Promise.all([
      stored.has("n") ? readNamed(head, inputName(open), stored.number("n")) : open.input,
      Promise.all(
        stored.list("k").map((step, index) => stepOf(head, step, childPath("open.k", index))),
      ),
    ]);
    return { ...open, input, steps };
  };

  const checkpoint: OpenTurns["checkpoint"] = async (write) => {
    const { head, kept, revision, untilMs, attempt } = write;
    const name = (kind: string) => `${kind}${revision}#${short(attempt)}`;
    const change =
      "steps" in kept
        ? {
            set: "#open.#steps = list_append(#open.#steps, :kept)",
            kept: await Promise.all(
              kept.steps.map(async (step, n) => ({
                m: await placed(head, name(`s${n}.`), encodeStep(step)),
                ...(step.results.every((result) => result === null)
                  ? {}
                  : { x: await placed(head, name(`x${n}.`), JSON.stringify(step.results)) }),
              })),
            ),
          }
        : {
            set: `#open.#steps[${kept.step}].#results = :kept`,
            kept: await placed(head, name("x"), JSON.stringify(kept.results)),
          };
    return {
      set: [change.set, "#open.#revision = #open.#revision + :one", "#claim.#until_ms = :until_ms"],
      condition: [
        when.SAME_INCARNATION,
        when.HELD,
        when.REVISION_UNCHANGED,
        when.LEASE_NOT_SHORTER,
      ],
      values: { ...heldValues(write), kept: change.kept, revision, one: 1, until_ms: untilMs },
      names: OPEN_NAMES,
    };
  };

  return { saveInput, read, checkpoint };
};

/** One that `openPartKey` can number. */
const isCount = (count: number): boolean => count > 0 && count <= MAX_PIECES;

const MAX_PIECES = 9999;

const inputName = ({ requestHash }: OpenTurn): string => `i#${short(requestHash)}`;

const damaged =
  (head: Head) =>
  (cause: unknown): never =>
    reading(where(head), () => {
      throw cause;
    });

const where = (head: Head): string => `session ${head.sessionId}, open turn ${head.open?.turnId}`;
