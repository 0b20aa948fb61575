import { brotliCompressSync, constants, zstdCompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { prose, seededRandom } from "../../bench/prose.ts";

/** How many times smaller real English prose becomes. */
const REAL_PROSE = [
  { bytes: 1000, zstd: 1.75, brotli: 2.05 },
  { bytes: 1900, zstd: 1.89, brotli: 2.16 },
  { bytes: 3800, zstd: 2.0, brotli: 2.3 },
];

const zstd = (text: string): Buffer =>
  zstdCompressSync(text, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
const brotli = (text: string): Buffer =>
  brotliCompressSync(text, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: 5,
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_SIZE_HINT]: text.length,
    },
  });

describe.each(REAL_PROSE)("prose of $bytes bytes", ({ bytes, ...real }) => {
  const random = seededRandom(1);
  const texts = Array.from({ length: 100 }, () => prose(bytes, random));
  const ratio = (compress: (text: string) => Buffer): number =>
    (texts.length * bytes) / texts.reduce((sum, text) => sum + compress(text).length, 0);

  test("compresses by zstd no better than real prose, and hardly worse", () => {
    expect(ratio(zstd)).toBeLessThanOrEqual(real.zstd);
    expect(ratio(zstd)).toBeGreaterThan(real.zstd * 0.93);
  });

  test("compresses by brotli no better than real prose, and hardly worse", () => {
    expect(ratio(brotli)).toBeLessThanOrEqual(real.brotli);
    expect(ratio(brotli)).toBeGreaterThan(real.brotli * 0.93);
  });
});

test("prose has the length asked for, in bytes, and follows from its seed", () => {
  const text = prose(777, seededRandom(5));
  expect(Buffer.byteLength(text)).toBe(777);
  expect(prose(777, seededRandom(5))).toBe(text);
  expect(prose(777, seededRandom(6))).not.toBe(text);
});
