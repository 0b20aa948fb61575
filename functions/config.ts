/** The settings, read from the environment once, at start. Nothing else in `functions/` or `lib/` reads it. */
import {
  DEFAULT_LEASE_SECONDS,
  DEFAULT_LIFETIME_SECONDS,
  DEFAULT_MAX_INPUT_BYTES,
} from "../lib/turns/turns.ts";

export interface Config {
  readonly tableName: string;
  /** Where DynamoDB is, if not in the function's Region. */
  readonly dynamodbEndpoint?: string;
  readonly lifetimeSeconds: number;
  readonly model: "demo";
  readonly system: string;
  readonly maxSteps: number;
  readonly maxInputBytes: number;
  readonly leaseSeconds: number;
}

/** Names every setting that is wrong, not only the first. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(problems: readonly string[]) {
    super(`settings: ${problems.join("; ")}`);
  }
}

/** @throws {ConfigError} */
export const readConfig = (env: Readonly<Record<string, string | undefined>>): Config => {
  const problems: string[] = [];
  const wholeNumber = (
    name: string,
    fallback: number,
    [min, max]: readonly [number, number],
  ): number => {
    const text = env[name];
    if (!text) return fallback;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    problems.push(
      `${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
    );
    return fallback;
  };

  const tableName = env["TABLE_NAME"] ?? "";
  if (!tableName)
    problems.push("TABLE_NAME is missing: the DynamoDB table that holds the sessions");
  const dynamodbEndpoint = env["DYNAMODB_ENDPOINT"];
  if (dynamodbEndpoint && !/^https?:$/.test(URL.parse(dynamodbEndpoint)?.protocol ?? "")) {
    problems.push(
      `DYNAMODB_ENDPOINT must be an http(s) URL, not ${JSON.stringify(dynamodbEndpoint)}`,
    );
  }
  const model = env["MODEL"] || "demo";
  if (model !== "demo") {
    problems.push(
      `MODEL must be "demo", not ${JSON.stringify(model)}: other models are set in functions/agent.ts`,
    );
  }
  const config: Config = {
    tableName,
    ...(dynamodbEndpoint ? { dynamodbEndpoint } : {}),
    lifetimeSeconds: wholeNumber("SESSION_LIFETIME_SECONDS", DEFAULT_LIFETIME_SECONDS, [
      60,
      100 * 366 * 86_400,
    ]),
    model: "demo",
    system: env["SYSTEM_PROMPT"] ?? "",
    maxSteps: wholeNumber("MAX_STEPS", 8, [0, 1000]),
    maxInputBytes: wholeNumber("MAX_INPUT_BYTES", DEFAULT_MAX_INPUT_BYTES, [1, 5_000_000]),
    leaseSeconds: wholeNumber("LEASE_SECONDS", DEFAULT_LEASE_SECONDS, [1, 900]),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
};

export const config = readConfig(process.env);
