/**
 * Text that compresses as English prose does, or a little worse: words by Zipf's law between the
 * phrases that join them, and a number now and then. Text that repeats itself would make every
 * store look better than it is.
 */
import { GLUE, WORDS } from "./words.ts";

/** Numbers in [0, 1), the same ones for the same seed. */
export type Random = () => number;

/** Mulberry32. */
export const seededRandom = (seed: number): Random => {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
};

/** Text of exactly `length` characters, each of them one byte. */
export const prose = (length: number, random: Random): string => {
  let text = "";
  while (text.length < length) text += sentence(random);
  return `${text.slice(0, length - 1)}.`;
};

const sentence = (random: Random): string => {
  const phrases = Array.from({ length: 3 + Math.floor(random() * 6) }, () => phrase(random));
  const text = phrases.join(random() < 0.3 ? ", " : " ");
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}. `;
};

const phrase = (random: Random): string => {
  const words = random() < 0.15 ? word(random) : `${word(random)} ${word(random)}`;
  return `${zipf(GLUE, 20, random)} ${words}`;
};

const word = (random: Random): string => {
  if (random() < 0.1) return String(Math.floor(random() * 100_000));
  return random() < 0.3 ? `${zipf(WORDS, 300, random)}s` : zipf(WORDS, 300, random);
};

/** Takes the word of rank n with a probability that goes with 1 / (n + offset). */
const zipf = (list: readonly string[], offset: number, random: Random): string =>
  list[Math.floor(offset * ((1 + list.length / offset) ** random() - 1))] ?? "";
