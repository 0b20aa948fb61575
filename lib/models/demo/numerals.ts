/**
 * Reads a number as people write it: "1,000.5", "twenty-one", "二十一". A number that a double
 * can't hold digit for digit is marked, never rounded in silence; what could mean two things
 * ("2,3", "one hundred and five") isn't a number.
 */

export interface Numeral {
  readonly value: number;
  /** Whether `value` is just what stands in the text. */
  readonly exact: boolean;
  /** How many characters of the text it takes. */
  readonly length: number;
}

/** The number that starts at `at` in lower-case text, or undefined where none does. */
export const readNumeral = (text: string, at: number): Numeral | undefined =>
  readDigits(text, at) ?? readEnglish(text, at) ?? readChinese(text, at);

/** How many digits of a decimal number matter: "0.0120" has two. An exponent isn't counted. */
export const significantDigits = (decimal: string): number =>
  decimal
    .replace(/e.*$/i, "")
    .replace(/[^\d.]/g, "")
    .replace(/^[0.]+/, "")
    .replace(/[0.]+$/, "")
    .replace(".", "").length;

const readDigits = (text: string, at: number): Numeral | undefined => {
  const written = matchAt(/\d+(?:[.,]\d+)*|\.\d+/y, text, at);
  if (written === undefined) return undefined;
  const rest = text.slice(at + written.length);
  // "3rd", "1e5" and "0x1f" are other things than 3, 1 and 0; "2x3" is a product.
  if (/^[a-wyz]/.test(rest) || (written === "0" && /^x[\da-f]/.test(rest))) return undefined;
  if (!/^(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)?(?:\.\d+)?$/.test(written)) return undefined;
  const decimal = written.replaceAll(",", "");
  const value = Number(decimal);
  const digits = significantDigits(decimal);
  const inRange = value === 0 ? digits === 0 : value >= 1e-300 && value <= 2 ** 53;
  return { value, exact: inRange && digits <= 15, length: written.length };
};

const smallWords = [
  ..."zero one two three four five six seven eight nine ten eleven twelve thirteen".split(" "),
  ..."fourteen fifteen sixteen seventeen eighteen nineteen".split(" "),
];
const tensWords = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const ones = smallWords.slice(1, 10).join("|");
const below100 = `(?:(?:${tensWords.join("|")})(?:[ -](?:${ones})(?![a-z]))?|${smallWords.slice(1).join("|")})(?![a-z])`;
const below1000 = `(?:(?:${ones}|a) hundred(?![a-z])(?: ${below100})?|${below100})`;
const english = new RegExp(
  `(?:zero|(?:${below1000}|a) thousand(?: ${below1000})?|${below1000})(?![a-z0-9']|-[a-z])`,
  "y",
);

const readEnglish = (text: string, at: number): Numeral | undefined => {
  const written = matchAt(english, text, at);
  if (written === undefined) return undefined;
  const length = written.length;
  // "add one hundred and five": 105, or 100 and 5?
  const unit = written.endsWith("hundred") ? 100 : written.endsWith("thousand") ? 1000 : 0;
  const joined = unit > 0 && text.startsWith(" and ", at + length);
  const next = joined ? readEnglish(text, at + length + " and ".length) : undefined;
  if (next && next.value < unit) return undefined;
  let total = 0;
  let group = 0;
  for (const word of written.split(/[ -]/)) {
    if (word === "thousand") {
      total += group * 1000;
      group = 0;
    } else if (word === "hundred") group *= 100;
    else group += wordValue(word);
  }
  return { value: total + group, exact: true, length };
};

const wordValue = (word: string): number => {
  if (word === "a") return 1;
  const small = smallWords.indexOf(word);
  return small >= 0 ? small : (tensWords.indexOf(word) + 2) * 10;
};

const chineseDigits = "零一二三四五六七八九";

const readChinese = (text: string, at: number): Numeral | undefined => {
  const written = matchAt(/[零一二两三四五六七八九十百千万点]+/y, text, at);
  if (written === undefined) return undefined;
  const [whole = "", fraction, ...more] = written.split("点");
  const integer = chineseInteger(whole);
  if (integer === undefined || more.length > 0) return undefined;
  if (fraction === undefined) return { value: integer, exact: true, length: written.length };
  if (!/^[零一二三四五六七八九]+$/.test(fraction)) return undefined;
  const decimal = `${integer}.${[...fraction].map((digit) => chineseDigits.indexOf(digit)).join("")}`;
  return {
    value: Number(decimal),
    exact: significantDigits(decimal) <= 15 && fraction.length <= 15,
    length: written.length,
  };
};

const chineseInteger = (text: string): number | undefined => {
  const [first = "", second, ...more] = text.split("万");
  if (second === undefined) return chineseSection(first);
  const high = chineseSection(first);
  if (!high || more.length > 0) return undefined;
  if (second === "") return high * 10_000;
  // 一万五 is 15,000; 一万零五 is 10,005.
  const low = chineseSection(second);
  if (low === undefined) return undefined;
  return high * 10_000 + (/^[一二三四五六七八九]$/.test(second) ? low * 1000 : low);
};

const section =
  /^(?:([一二两三四五六七八九])千)?零?(?:([一二两三四五六七八九])百)?零?(?:([一二三四五六七八九]?)十)?零?([一二三四五六七八九])?$/;

/** A number below 10,000. */
const chineseSection = (text: string): number | undefined => {
  if (text === "零") return 0;
  if (text === "两") return 2;
  const match = section.exec(text);
  if (!match || text === "" || text.endsWith("零") || text.includes("零零")) return undefined;
  const [, thousands, hundreds, tens, units] = match;
  const digit = (character: string | undefined): number =>
    character === undefined ? 0 : character === "两" ? 2 : chineseDigits.indexOf(character);
  // 一百五 is 150, and 两千三 is 2,300: a last digit right behind a unit counts the next lower unit.
  const unit = /百.$/.test(text) && units ? 10 : /千.$/.test(text) && units ? 100 : 1;
  const tensValue = tens === undefined ? 0 : tens === "" ? 1 : digit(tens);
  return digit(thousands) * 1000 + digit(hundreds) * 100 + tensValue * 10 + digit(units) * unit;
};

const matchAt = (sticky: RegExp, text: string, at: number): string | undefined => {
  sticky.lastIndex = at;
  return sticky.exec(text)?.[0];
};
