/**
 * Cuts a request into tokens of a closed vocabulary. A word or sign outside of it makes the whole
 * text unreadable: nothing is skipped, so nothing can be understood in part.
 */

import { readNumeral } from "./numerals.ts";

export type ToolName = "add" | "subtract" | "multiply" | "divide";

export type Token =
  | { readonly kind: "number"; readonly value: number; readonly exact: boolean }
  /** A value that was worked out before: by the clause before, or in an earlier turn. */
  | { readonly kind: "running" | "previous" }
  /** Stands before its operands: "multiply". */
  | { readonly kind: "verb"; readonly tool: ToolName }
  /** Stands between its operands: "times", "乘以", "*". */
  | { readonly kind: "infix"; readonly tool: ToolName }
  /** "-", a sign only where its operand is right behind it: "- 5 + 3" could go on from a result. */
  | { readonly kind: "dash"; readonly sign: boolean }
  /** "the sum of"; its operands follow. */
  | { readonly kind: "total"; readonly tool: ToolName }
  /** "相加", "的和"; its two operands went before. */
  | { readonly kind: "pair"; readonly tool: ToolName }
  | { readonly kind: PlainKind };

/** `mark` and `particle` frame the first operand in Chinese, as in 从 10 中减去 4. */
type PlainKind =
  | ("negative" | "open" | "close" | "and" | "to" | "from" | "by" | "mark" | "particle")
  | ("comma" | "stop" | "then" | "first" | "ask" | "end" | "filler");

/** The tokens of a text, or undefined where any part of it is unknown. */
export const tokenize = (text: string): Token[] | undefined => {
  const written = normalize(text);
  const tokens: Token[] = [];
  for (let at = 0; at < written.length; ) {
    if (written[at] === " ") {
      at += 1;
      continue;
    }
    const next = readWord(written, at) ?? readNumber(written, at);
    if (!next) return undefined;
    tokens.push(next.token);
    at += next.length;
  }
  return tokens;
};

const vocabulary: readonly (readonly [Token, string])[] = [
  [{ kind: "verb", tool: "add" }, "add|add up|sum"],
  [{ kind: "verb", tool: "subtract" }, "subtract|deduct"],
  [{ kind: "verb", tool: "multiply" }, "multiply"],
  [{ kind: "verb", tool: "divide" }, "divide"],
  [{ kind: "infix", tool: "add" }, "+|plus|added to|加|加上"],
  [{ kind: "infix", tool: "subtract" }, "minus|减|减去|减掉"],
  [{ kind: "infix", tool: "multiply" }, "*|×|x|times|multiplied by|乘|乘以|乘上"],
  [{ kind: "infix", tool: "divide" }, "/|÷|divided by|除以"],
  [{ kind: "dash", sign: true }, "-"],
  [{ kind: "dash", sign: false }, "- "],
  [{ kind: "total", tool: "add" }, "sum of|the sum of"],
  [{ kind: "total", tool: "multiply" }, "product of|the product of"],
  [{ kind: "pair", tool: "add" }, "的和|相加"],
  [{ kind: "pair", tool: "subtract" }, "的差|相减"],
  [{ kind: "pair", tool: "multiply" }, "的积|相乘"],
  [{ kind: "pair", tool: "divide" }, "的商|相除"],
  [{ kind: "running" }, "it|that|this|the result|the answer|the total|that result|this result"],
  [{ kind: "running" }, "结果|它|这个结果|得数|答案|这个数"],
  [{ kind: "previous" }, "the previous result|the last result|the previous answer|the last answer"],
  [{ kind: "previous" }, "上一个结果|上次的结果|上次结果|刚才的结果|之前的结果"],
  [{ kind: "negative" }, "negative|负"],
  [{ kind: "open" }, "("],
  [{ kind: "close" }, ")"],
  [{ kind: "and" }, "and|和|与|跟"],
  [{ kind: "to" }, "to"],
  [{ kind: "from" }, "from"],
  [{ kind: "by" }, "by"],
  [{ kind: "mark" }, "把|将|用|从|给|在|拿|让"],
  [{ kind: "particle" }, "中|里|里面|上|的基础上"],
  [{ kind: "comma" }, ","],
  [{ kind: "stop" }, ".|;|?|!|:|\n"],
  [{ kind: "then" }, "then|next|now|after that|afterwards|finally|lastly"],
  [{ kind: "then" }, "再|然后|接着|接下来|随后|后|之后|以后|最后|现在"],
  [{ kind: "first" }, "first|先|首先"],
  [{ kind: "ask" }, "what is|what's|whats|what are|what does|how much is|how much are"],
  [{ kind: "ask" }, "what do you get if you|what do i get if i"],
  [{ kind: "end" }, "=|is|equal|equals|is what|equals what"],
  [{ kind: "end" }, "是多少|等于多少|得多少|得到多少|多少|等于几|是几|得几|等于|是什么|呢|吧"],
  [{ kind: "filler" }, "please|can you|could you|would you|calculate|compute|work out|evaluate"],
  [{ kind: "filler" }, "tell me|find|for me|together|the result of|the value of|so|ok|okay"],
  [{ kind: "filler" }, "hi|hello|hey|thanks|thank you"],
  [
    { kind: "filler" },
    "请|请你|请问|请帮我|帮我|麻烦|你好|您好|谢谢|那么|那|好|好的|告诉我|我想知道",
  ],
  [{ kind: "filler" }, "算|算出|算一下|算算|计算|计算一下|求|一下|一共"],
];

/** Longest first, so that "the result of" isn't taken for "the result". */
const phrases = vocabulary
  .flatMap(([token, written]) => written.split("|").map((phrase) => ({ phrase, token })))
  .sort((one, other) => other.phrase.length - one.phrase.length);

interface Found {
  readonly token: Token;
  readonly length: number;
}

const readWord = (text: string, at: number): Found | undefined => {
  // "5!" may mean a factorial.
  if (text[at] === "!" && /[\d)] ?$/.test(text.slice(0, at))) return undefined;
  const found = phrases.find(
    ({ phrase }) => text.startsWith(phrase, at) && endsWell(phrase, text[at + phrase.length]),
  );
  return found && { token: found.token, length: found.phrase.length };
};

/** Whether a phrase isn't just the beginning of something longer. "2x3" has a whole x in it. */
const endsWell = (phrase: string, next = ""): boolean => {
  if (phrase === ".") return !/\d/.test(next);
  if (phrase === "x") return !/[a-z]/.test(next);
  return !/[a-z]$/.test(phrase) || !/[a-z0-9']/.test(next);
};

const readNumber = (text: string, at: number): Found | undefined => {
  const numeral = readNumeral(text, at);
  if (!numeral) return undefined;
  const { value, exact, length } = numeral;
  return { token: { kind: "number", value, exact }, length };
};

/**
 * One way to write each sign. Not Unicode's NFKC, which would make 32 of "3²". A full-width comma
 * parts thousands among full-width digits only; elsewhere it parts clauses (2+3，100).
 */
const normalize = (text: string): string =>
  text
    .replace(/(?<=[０-９])，(?=[０-９]{3}(?![０-９]))/g, ",")
    .replace(/[，、]/g, ", ")
    .replaceAll("。", ". ")
    .replace(/[！-～]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) - 0xfee0))
    .replaceAll("−", "-")
    .replaceAll("’", "'")
    .replace(/\r\n?/g, "\n")
    .replace(/[^\S\n]+/g, " ")
    .trim()
    .toLowerCase();
