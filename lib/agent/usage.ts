import type { Usage } from "./model.ts";

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0 };

export const addUsage = (sum: Usage, more: Usage | undefined): Usage => ({
  inputTokens: sum.inputTokens + tokens(more?.inputTokens),
  outputTokens: sum.outputTokens + tokens(more?.outputTokens),
});

/** Some SDKs say NaN for "unknown", which JSON can't hold: the stored turn couldn't be read again. */
const tokens = (count: number | undefined): number =>
  typeof count === "number" && Number.isFinite(count) && count > 0 ? count : 0;
