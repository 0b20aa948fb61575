/**
 * History as the value of an attribute: text as it is, or bytes that begin with the number of their
 * encoding. A segment is a few KB: too short for a compressor to learn the names in a turn's JSON
 * before the end, so it is told them beforehand. That saves a tenth, which decides whether a write
 * costs two units or three, and takes half of Brotli's time to read.
 */
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { invalid } from "../../session/invalid.ts";
import { kindOf } from "../../session/json.ts";

export type Content = string | Uint8Array;

/** Below this, nothing is gained. */
const MIN_COMPRESSED_BYTES = 128;

const PLAIN = 0;
const DEFLATE = 1;

/** What compressed content refers to: another dictionary is another encoding, with a number of its own. */
const DICTIONARY = Buffer.from(
  '"parts":["supersedes":""finish":"max_steps"{"role":"system","content":"' +
    '[{"turn_id":"~0123456789abcdef","started_at":"2026-12-01T12:00:00.000000+00:00",' +
    '"finished_at":"2026-12-01T12:00:01.000000+00:00","finish":"final","usage":[0,0],' +
    '"messages":[{"role":"user","content":""},{"role":"assistant","content":"","tool_calls":[' +
    '{"id":"call_","name":"","arguments":{"query":""}}]},' +
    '{"role":"tool","content":"","tool_call_id":"call_"},{"role":"assistant","content":"',
);

export const encodeContent = (text: string): Content => {
  const bytes = Buffer.byteLength(text);
  if (bytes < MIN_COMPRESSED_BYTES) return text;
  const compressed = deflateRawSync(text, { dictionary: DICTIONARY, memLevel: 9 });
  return compressed.length + 1 < bytes ? Buffer.concat([Uint8Array.of(DEFLATE), compressed]) : text;
};

/** @throws {InvalidInputError} where it isn't what `encodeContent` gave */
export const decodeContent = (content: unknown, path: string): string => {
  if (typeof content === "string") return content;
  if (!(content instanceof Uint8Array))
    throw invalid(path, `must be text or bytes, not ${kindOf(content)}`);
  if (content[0] === PLAIN) return Buffer.from(content.subarray(1)).toString("utf8");
  if (content[0] !== DEFLATE) throw invalid(path, `has the unknown encoding ${content[0]}`);
  try {
    return inflateRawSync(content.subarray(1), {
      dictionary: DICTIONARY,
      chunkSize: 8192,
    }).toString("utf8");
  } catch {
    throw invalid(path, "can't be decompressed");
  }
};

/** Content that can be cut anywhere, and joined again. */
export const toBytes = (content: Content): Uint8Array =>
  typeof content === "string"
    ? Buffer.concat([Uint8Array.of(PLAIN), Buffer.from(content)])
    : content;

export const contentBytes = (content: Content): number =>
  typeof content === "string" ? Buffer.byteLength(content) : content.length;
