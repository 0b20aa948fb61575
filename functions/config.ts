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
  readonly model: ModelSetting;
  readonly system: string;
  readonly maxSteps: number;
  readonly maxInputBytes: number;
  readonly leaseSeconds: number;
}

export type ModelSetting =
  | { readonly kind: "demo" }
  | { readonly kind: "bedrock"; readonly modelId: string }
  | {
      readonly kind: "openai-compatible";
      readonly baseUrl: string;
      readonly modelId: string;
      /** Undefined for a server that wants none. */
      readonly apiKey: string | undefined;
    };

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
  if (dynamodbEndpoint && !isHttpUrl(dynamodbEndpoint)) {
    problems.push(
      `DYNAMODB_ENDPOINT must be an http(s) URL, not ${JSON.stringify(dynamodbEndpoint)}`,
    );
  }
  const model = modelSetting(env["MODEL"] || "demo", env["MODEL_API_KEY"] || undefined);
  if (!model) {
    problems.push(
      `MODEL must be "demo", "bedrock:<model id>" or "openai-compatible:<base url>#<model>", not ${JSON.stringify(env["MODEL"])}: other models are set in functions/agent.ts`,
    );
  }
  const config: Config = {
    tableName,
    ...(dynamodbEndpoint ? { dynamodbEndpoint } : {}),
    lifetimeSeconds: wholeNumber("SESSION_LIFETIME_SECONDS", DEFAULT_LIFETIME_SECONDS, [
      60,
      100 * 366 * 86_400,
    ]),
    model: model ?? { kind: "demo" },
    system: env["SYSTEM_PROMPT"] ?? "",
    maxSteps: wholeNumber("MAX_STEPS", 8, [0, 1000]),
    maxInputBytes: wholeNumber("MAX_INPUT_BYTES", DEFAULT_MAX_INPUT_BYTES, [1, 5_000_000]),
    leaseSeconds: wholeNumber("LEASE_SECONDS", DEFAULT_LEASE_SECONDS, [1, 900]),
  };
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
};

const modelSetting = (text: string, apiKey: string | undefined): ModelSetting | undefined => {
  if (text === "demo") return { kind: "demo" };
  const bedrock = /^bedrock:(\S+)$/.exec(text);
  if (bedrock?.[1]) return { kind: "bedrock", modelId: bedrock[1] };
  const [, baseUrl = "", modelId = ""] = /^openai-compatible:(\S+?)#(\S+)$/.exec(text) ?? [];
  if (!isHttpUrl(baseUrl)) return undefined;
  return { kind: "openai-compatible", baseUrl: baseUrl.replace(/\/+$/, ""), modelId, apiKey };
};

const isHttpUrl = (text: string): boolean => /^https?:$/.test(URL.parse(text)?.protocol ?? "");

export const config = readConfig(process.env);
