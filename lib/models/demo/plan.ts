import { NotArithmetic, type Operation, parse } from "./parse.ts";
import { tokenize } from "./tokens.ts";

export type Plan =
  | { readonly kind: "operations"; readonly operations: readonly Operation[] }
  /** `tooLong`: unread. `inexact`: it names a number that a double can't hold. */
  | { readonly kind: "notArithmetic" | "tooLong" | "inexact" };

/** These bound the time, the depth of recursion, and the tool calls that one request can cost. */
export const MAX_CHARACTERS = 1000;
export const MAX_TOKENS = 200;

export const planFor = (request: string): Plan => {
  if (request.length > MAX_CHARACTERS) return { kind: "tooLong" };
  const tokens = tokenize(request);
  if (!tokens) return { kind: "notArithmetic" };
  if (tokens.length > MAX_TOKENS) return { kind: "tooLong" };
  try {
    const operations = parse(tokens);
    const exact = tokens.every((token) => token.kind !== "number" || token.exact);
    return exact ? { kind: "operations", operations } : { kind: "inexact" };
  } catch (error) {
    if (error instanceof NotArithmetic) return { kind: "notArithmetic" };
    throw error;
  }
};
