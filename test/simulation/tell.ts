/** A run as a story that a person can read. */
import type { Delivery } from "./log.ts";
import { shrink } from "./shrink.ts";
import { type RunOptions, simulate } from "./simulate.ts";

/** The smallest story found that breaks an invariant as the given run does. */
export const smallestStory = async (options: RunOptions, budget = 3000): Promise<string> => {
  const first = await simulate(options);
  const { seed: _, ...rest } = options;
  const fails = async (choices: readonly number[]): Promise<boolean> =>
    (await simulate({ ...rest, choices })).violations.some((it) =>
      first.violations.some((known) => kindOf(known) === kindOf(it)),
    );
  const choices = await shrink(first.choices, fails, budget);
  return storyOf({ ...rest, choices });
};

/** A violation without the names in it. */
const kindOf = (violation: string): string =>
  (violation.split("\n")[0] ?? "").replace(/\b[cd]\d\S*|~\w+|shared|\d+/g, "…");

export const storyOf = async (options: RunOptions): Promise<string> => {
  const chosen: string[] = [];
  const run = await simulate({
    ...options,
    onChoice: (label, answer) => {
      if (answer !== 0) chosen.push(`${label} ${answer}`);
    },
  });
  return [
    ...run.violations.map((it) => `BROKEN: ${it}`),
    "",
    "What was done:",
    ...run.log.deliveries.map(deliveryLine),
    ...run.log.effects.map(
      ({ tool, call, turnId, delivery }) =>
        `  ${tool} ran for ${call} (turn ${turnId}, ${delivery.name})`,
    ),
    "",
    "What reached the table:",
    ...run.trace.map(
      ({ process, op, key, outcome }) =>
        `  ${process.padEnd(9)} ${op.padEnd(9)} ${key}: ${outcome}`,
    ),
    "",
    `Chosen, where it wasn't the plain thing: ${chosen.join(", ")}`,
    `Choices: ${JSON.stringify(run.choices)}`,
  ].join("\n");
};

const deliveryLine = ({
  name,
  process,
  turnId,
  input,
  onBusy,
  granted,
  outcome,
}: Delivery): string => {
  const got = granted ? `granted on version ${granted.version}` : "not granted";
  return `  ${name} on ${process}: turn ${turnId ?? "(own)"} ${JSON.stringify(input)} ${onBusy}, ${got}: ${told(outcome)}`;
};

const told = (outcome: Delivery["outcome"]): string => {
  if (!outcome) return "no answer";
  if (outcome.kind === "error") return String(outcome.error);
  const { result } = outcome;
  const how = result.replayed ? "replayed" : result.finish;
  return `${JSON.stringify(result.final)} at version ${result.version}, ${how}`;
};
