/**
 * Turns tokens into a list of operations. All of them count, or there is none: what could be read
 * in two ways ("multiply 2 by 3 plus 4") is refused like what can't be read at all, and so is a
 * clause that leaves the result of the one before unused.
 */

import type { Token, ToolName } from "./tokens.ts";

export interface Operation {
  readonly tool: ToolName;
  readonly a: Operand;
  readonly b: Operand;
}

export type Operand =
  | { readonly kind: "number"; readonly value: number }
  /** The result of an operation of the same plan, which stands before this one. */
  | { readonly kind: "step"; readonly index: number }
  /** The result that the conversation had before this request. */
  | { readonly kind: "previous" };

export class NotArithmetic extends Error {
  override readonly name = "NotArithmetic";
}

/**
 *     request: gap? clause (gap clause)* gap?
 *     clause:  verb operands | infix sum, on the running value | mark? operand pair? particle? sum
 *     sum:     product (("+" | "-") product)*
 *     product: operand (("*" | "/") operand)*
 *     operand: number | running | previous | "-" operand | "(" sum ")" | "the sum of" list
 *
 * @throws {NotArithmetic} where that isn't what the tokens are
 */
export const parse = (tokens: readonly Token[]): Operation[] => {
  const operations: Operation[] = [];
  let at = 0;
  let running: Operand = { kind: "previous" };
  let runningUsed = false;

  const request = (): Operation[] => {
    let gap = skipGap();
    while (at < tokens.length) {
      if (operations.length > 0 && !gap.parted) throw new NotArithmetic();
      const before = operations.length;
      runningUsed = before === 0;
      clause(gap.asked);
      if (operations.length === before || !runningUsed) throw new NotArithmetic();
      running = { kind: "step", index: operations.length - 1 };
      gap = skipGap();
    }
    if (operations.length === 0) throw new NotArithmetic();
    return operations;
  };

  /** Skips what stands between clauses; `parted` says whether it can end one. */
  const skipGap = (): { parted: boolean; asked: boolean } => {
    const gap = { parted: false, asked: false };
    for (; ; at += 1) {
      const kind = peek();
      if (kind === "comma" || kind === "stop" || kind === "then") gap.parted = true;
      else if (kind === "and" && endsClause(peek(1))) gap.parted = true;
      else if (kind === "ask") gap.asked = true;
      // "Multiply by 4, first add 2" turns the order around.
      else if (kind === "first" && operations.length > 0) throw new NotArithmetic();
      else if (kind !== "first" && kind !== "end" && kind !== "filler") return gap;
    }
  };

  const clause = (asked: boolean): void => {
    const first = tokens[at];
    if (first?.kind === "verb") {
      at += 1;
      verbs[first.tool]();
    } else if (first?.kind === "infix" && !asked) sum(useRunning());
    else {
      const marked = skip("mark");
      const start = pair(operand());
      if (marked) skip("particle");
      sum(start);
    }
  };

  // Operands of a verb are single ones: "add 2 and 3 * 4" and "multiply 2 by 3 plus 4" don't say
  // what comes first.
  const verbs: Record<ToolName, () => void> = {
    add: () => {
      const items = list();
      if (skip("to")) chain("add", [operand(), ...items]);
      else if (items.length > 1) chain("add", items);
      else emit("add", useRunning(), notRunning(items[0]));
    },
    subtract: () => {
      const b = operand();
      if (skip("from")) emit("subtract", operand(), b);
      else emit("subtract", useRunning(), notRunning(b));
    },
    multiply: () => {
      if (skip("by")) {
        emit("multiply", useRunning(), operand());
        return;
      }
      const items = list();
      if (items.length === 1) {
        expect("by");
        items.push(operand());
      }
      chain("multiply", items);
    },
    divide: () => {
      const a = peek() === "by" ? useRunning() : operand();
      expect("by");
      emit("divide", a, operand());
    },
  };

  /** "2", "2 and 3", "2, 3 and 4": a comma alone joins nothing. */
  const list = (): Operand[] => {
    const items = [operand()];
    let joined = true;
    for (;;) {
      const comma = peek() === "comma" ? 1 : 0;
      const and = peek(comma) === "and" ? 1 : 0;
      if (comma + and === 0 || !startsOperand(peek(comma + and))) break;
      at += comma + and;
      items.push(operand());
      joined = and === 1;
    }
    if (!joined) throw new NotArithmetic();
    return items;
  };

  const sum = (start: Operand): Operand => {
    let left = product(start);
    for (;;) {
      const tool = infix();
      if (tool !== "add" && tool !== "subtract") return left;
      at += 1;
      left = emit(tool, left, product(operand()));
    }
  };

  const product = (start: Operand): Operand => {
    let left = start;
    for (;;) {
      const tool = infix();
      if (tool !== "multiply" && tool !== "divide") return left;
      at += 1;
      left = emit(tool, left, operand());
    }
  };

  /** 2 和 3 相加 */
  const pair = (a: Operand): Operand => {
    if (!skip("and")) return a;
    const b = operand();
    const token = tokens[at];
    if (token?.kind !== "pair") throw new NotArithmetic();
    at += 1;
    return emit(token.tool, a, b);
  };

  const operand = (): Operand => {
    const token = tokens[at];
    at += 1;
    switch (token?.kind) {
      case "number":
        return { kind: "number", value: token.value };
      case "running":
        return useRunning();
      case "previous":
        // Behind a first clause it could mean the result of that.
        if (running.kind !== "previous") throw new NotArithmetic();
        return running;
      case "dash":
        if (!token.sign) throw new NotArithmetic();
        return negate(operand());
      case "negative":
        return negate(operand());
      case "total": {
        const items = list();
        if (items.length < 2) throw new NotArithmetic();
        return chain(token.tool, items);
      }
      case "open": {
        const value = sum(operand());
        expect("close");
        return value;
      }
      default:
        throw new NotArithmetic();
    }
  };

  const negate = (value: Operand): Operand =>
    value.kind === "number"
      ? { kind: "number", value: 0 - value.value }
      : emit("subtract", { kind: "number", value: 0 }, value);

  const useRunning = (): Operand => {
    runningUsed = true;
    return running;
  };

  /** "Add it" doesn't say to what. */
  const notRunning = (item: Operand | undefined): Operand => {
    if (!item || item === running) throw new NotArithmetic();
    return item;
  };

  const chain = (tool: ToolName, [first, ...others]: readonly Operand[]): Operand => {
    if (!first) throw new NotArithmetic();
    return others.reduce((a, b) => emit(tool, a, b), first);
  };

  const emit = (tool: ToolName, a: Operand, b: Operand): Operand => {
    operations.push({ tool, a, b });
    return { kind: "step", index: operations.length - 1 };
  };

  const infix = (): ToolName | undefined => {
    const token = tokens[at];
    if (token?.kind === "dash") return "subtract";
    return token?.kind === "infix" ? token.tool : undefined;
  };

  const peek = (ahead = 0): Token["kind"] | undefined => tokens[at + ahead]?.kind;

  const skip = (kind: Token["kind"]): boolean => {
    if (peek() !== kind) return false;
    at += 1;
    return true;
  };

  const expect = (kind: Token["kind"]): void => {
    if (!skip(kind)) throw new NotArithmetic();
  };

  return request();
};

const startsOperand = (kind: Token["kind"] | undefined): boolean =>
  ["number", "running", "previous", "dash", "negative", "total", "open"].some(
    (one) => one === kind,
  );

/** What "and" can't join to the operand before it: the next clause starts there. */
const endsClause = (kind: Token["kind"] | undefined): boolean =>
  ["verb", "then", "ask", "filler"].some((one) => one === kind);
