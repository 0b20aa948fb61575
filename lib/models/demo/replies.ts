import { MAX_CHARACTERS, MAX_TOKENS } from "./plan.ts";

/** What the demo model says, in the language of the request. */
export interface Replies {
  /** `result` is the tool's own text. */
  readonly result: (result: string) => string;
  readonly notArithmetic: string;
  readonly tooLong: string;
  readonly inexact: string;
  readonly noPrevious: string;
  readonly missingTools: (names: readonly string[]) => string;
  readonly toolFailed: (name: string, content: string) => string;
  readonly toolUnreadable: (name: string, content: string) => string;
}

export const repliesFor = (request: string): Replies =>
  /\p{Script=Han}/u.test(request) ? chinese : english;

/** The number in an answer that `result` made, in either language. */
export const resultIn = (answer: string): string | undefined =>
  /^(?:The result is (\S+)\.|结果是 (\S+)。)$/.exec(answer)?.slice(1).find(Boolean);

const english: Replies = {
  result: (result) => `The result is ${result}.`,
  notArithmetic:
    "I'm the demo model: I work out arithmetic in English or Chinese by calling tools, one step " +
    'at a time, and can do nothing else. Try "Add 2 and 3, then multiply the result by 4" or ' +
    '"what is (2 + 3) * 4?".',
  tooLong:
    `That is too long for the demo: I read at most ${MAX_CHARACTERS} characters, ` +
    `and ${MAX_TOKENS} numbers and words.`,
  inexact:
    "The demo doesn't do such numbers: my tools count with at most 15 significant digits, and up " +
    "to 2^53. I'd have to round, so I stopped.",
  noPrevious:
    'There is no earlier result to go on from. Start with two numbers, as in "add 2 and 3".',
  missingTools: (names) => `That takes tools that I wasn't offered: ${names.join(", ")}.`,
  toolFailed: (name, content) => `I stopped, because the tool ${name} failed: ${content}`,
  toolUnreadable: (name, content) =>
    `I stopped, because the tool ${name} gave no number that I can work with: ${content}`,
};

const chinese: Replies = {
  result: (result) => `结果是 ${result}。`,
  notArithmetic:
    "我是演示模型：只会调用工具，一步一步地做用中文或英文写的四则运算，别的都不会。" +
    "可以试试“先算 2+3，再把结果乘 4”，或者“(2 + 3) * 4 等于多少？”。",
  tooLong: `这对演示模型来说太长了：最多 ${MAX_CHARACTERS} 个字符，以及 ${MAX_TOKENS} 个数和词。`,
  inexact:
    "演示模型不算这样的数：我的工具最多保留 15 位有效数字，且不超过 2^53。否则只能取近似值，所以我停下了。",
  noPrevious: "前面还没有可以接着算的结果。请先给出两个数，例如“2 加 3”。",
  missingTools: (names) => `这需要我没有得到的工具：${names.join("、")}。`,
  toolFailed: (name, content) => `我停下了，因为工具 ${name} 出错：${content}`,
  toolUnreadable: (name, content) => `我停下了，因为工具 ${name} 没有给出可用的数：${content}`,
};
