/** The tokens of an expression, and what the parts of its grammar share. */
import { refuse } from "./documents.ts";
import type { Condition, Parsed, Path } from "./tree.ts";

export interface Cursor {
  readonly text: string;
  readonly paths: Path[];
  readonly names: Set<string>;
  readonly values: Set<string>;
  readonly checks: Parsed<unknown>["checks"][number][];
  /** What the last parentheses held. */
  grouped?: Condition;
  /** Empty at the end. */
  readonly next: string;
  take(): string;
  /** Whether the next one is this keyword, in whatever case, or this sign; it is taken then. */
  skip(token: string): boolean;
}

export const cursorOver = (text: string): Cursor => {
  const tokens = text.match(/[#:]?\w+|<>|<=|>=|\S/g) ?? [];
  let at = 0;
  return {
    text,
    paths: [],
    names: new Set(),
    values: new Set(),
    checks: [],
    get next() {
      return tokens[at] ?? "";
    },
    take: () => tokens[at++] ?? "",
    skip: (token) => {
      const isNext = tokens[at]?.toUpperCase() === token;
      if (isNext) at++;
      return isNext;
    },
  };
};

export const syntaxError = ({ text, next }: Cursor): never =>
  refuse(`Syntax error; token: ${next || "<EOF>"}, in: ${text}`);

export const expect = (cursor: Cursor, token: string): void => {
  if (!cursor.skip(token)) syntaxError(cursor);
};

/** Whether this function is called here; its name and parenthesis are taken then. */
export const call = (cursor: Cursor, name: string): boolean => {
  if (cursor.next !== name) return false;
  cursor.take();
  expect(cursor, "(");
  return true;
};

export const pathAt = (cursor: Cursor): Path => {
  const path: (string | number)[] = [];
  do {
    const name = nextLike(cursor, /^#?\w+$/);
    if (name.startsWith("#")) cursor.names.add(name);
    path.push(name);
    while (cursor.skip("[")) {
      path.push(Number(nextLike(cursor, /^\d+$/)));
      expect(cursor, "]");
    }
  } while (cursor.skip("."));
  cursor.paths.push(path);
  return path;
};

const nextLike = (cursor: Cursor, form: RegExp): string => {
  if (!form.test(cursor.next)) syntaxError(cursor);
  return cursor.take();
};
