import { afterEach, describe, expect, test, vi } from "vitest";

// The module reads the environment when it is imported, as a function does at its start.
vi.stubEnv("TABLE_NAME", "sessions");
const { ConfigError, readConfig } = await import("../../functions/config.ts");
vi.unstubAllEnvs();

const refusalOf = (env: Record<string, string>): string => {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return error instanceof Error ? error.message : "";
  }
  throw new Error("the settings were taken");
};

describe("the settings", () => {
  const DEFAULTS = {
    tableName: "sessions",
    lifetimeSeconds: 2_592_000,
    model: { kind: "demo" },
    system: "",
    maxSteps: 8,
    maxInputBytes: 262_144,
    leaseSeconds: 30,
  };

  test("need no more than a table", () => {
    expect(readConfig({ TABLE_NAME: "sessions" })).toEqual(DEFAULTS);
  });

  test("take the default for an empty text, as for none", () => {
    const env = {
      DYNAMODB_ENDPOINT: "",
      SESSION_LIFETIME_SECONDS: "",
      MODEL: "",
      MODEL_API_KEY: "",
      SYSTEM_PROMPT: "",
      MAX_STEPS: "",
      MAX_INPUT_BYTES: "",
      LEASE_SECONDS: "",
    };
    expect(readConfig({ TABLE_NAME: "sessions", ...env })).toEqual(DEFAULTS);
  });

  test("are all taken where they are given", () => {
    const env = {
      TABLE_NAME: "other",
      DYNAMODB_ENDPOINT: "http://127.0.0.1:8000",
      SESSION_LIFETIME_SECONDS: "3600",
      MODEL: "demo",
      SYSTEM_PROMPT: " Be brief. ",
      MAX_STEPS: "3",
      MAX_INPUT_BYTES: "1000",
      LEASE_SECONDS: "60",
      PATH: "/bin",
    };
    expect(readConfig(env)).toEqual({
      tableName: "other",
      dynamodbEndpoint: "http://127.0.0.1:8000",
      lifetimeSeconds: 3600,
      model: { kind: "demo" },
      system: " Be brief. ",
      maxSteps: 3,
      maxInputBytes: 1000,
      leaseSeconds: 60,
    });
  });

  test.each([
    ["SESSION_LIFETIME_SECONDS", "60", "3162240000", "59", "3162240001"],
    ["MAX_STEPS", "0", "1000", "-1", "1001"],
    ["MAX_INPUT_BYTES", "1", "5000000", "0", "5000001"],
    ["LEASE_SECONDS", "1", "900", "0", "901"],
  ])("bound %s by %s and %s", (...[name, min, max, below, above]) => {
    for (const text of [min, max])
      expect(() => readConfig({ TABLE_NAME: "t", [name]: text })).not.toThrow();
    for (const text of [
      below,
      above,
      "1.5",
      "1e3",
      "0x10",
      " 60",
      "60 ",
      "+60",
      "sixty",
      "NaN",
      "9".repeat(400),
    ]) {
      expect(refusalOf({ TABLE_NAME: "t", [name]: text })).toBe(
        `settings: ${name} must be a whole number from ${min} to ${max}, not ${JSON.stringify(text)}`,
      );
    }
  });

  test.each([
    "http://127.0.0.1:8000",
    "https://dynamodb.eu-west-1.amazonaws.com",
    "http://[::1]:8000/",
  ])("take the endpoint %s", (endpoint) => {
    expect(readConfig({ TABLE_NAME: "t", DYNAMODB_ENDPOINT: endpoint }).dynamodbEndpoint).toBe(
      endpoint,
    );
  });

  test.each([
    "localhost:8000",
    "127.0.0.1:8000",
    "ftp://host",
    "http://",
    "/",
    " ",
    "javascript:alert(1)",
  ])("refuse the endpoint %j", (endpoint) => {
    expect(refusalOf({ TABLE_NAME: "t", DYNAMODB_ENDPOINT: endpoint })).toBe(
      `settings: DYNAMODB_ENDPOINT must be an http(s) URL, not ${JSON.stringify(endpoint)}`,
    );
  });

  test.each([
    ["demo", { kind: "demo" }],
    [
      "bedrock:eu.anthropic.claude-opus-5-20260101-v1:0",
      { kind: "bedrock", modelId: "eu.anthropic.claude-opus-5-20260101-v1:0" },
    ],
    [
      "openai-compatible:http://127.0.0.1:11434/v1#llama3.2:3b",
      {
        kind: "openai-compatible",
        baseUrl: "http://127.0.0.1:11434/v1",
        modelId: "llama3.2:3b",
        apiKey: "k",
      },
    ],
    [
      "openai-compatible:https://host/v1/#org/model#2",
      {
        kind: "openai-compatible",
        baseUrl: "https://host/v1",
        modelId: "org/model#2",
        apiKey: "k",
      },
    ],
  ])("name the model %s", (text, model) => {
    const env = { TABLE_NAME: "t", MODEL: text, MODEL_API_KEY: "k" };
    expect(readConfig(env).model).toEqual(model);
  });

  test.each([
    "Demo",
    " demo",
    "bedrock:",
    "bedrock: x",
    "openai-compatible:http://127.0.0.1",
    "openai-compatible:http://127.0.0.1#",
    "openai-compatible:127.0.0.1#m",
    "openai:gpt",
  ])("refuse the model %j, and say what there is", (model) => {
    const refusal = refusalOf({ TABLE_NAME: "t", MODEL: model });
    expect(refusal).toContain('MODEL must be "demo", "bedrock:<model id>" or "openai-compatible:');
    expect(refusal).toContain(`not ${JSON.stringify(model)}`);
    expect(refusal).toContain("functions/agent.ts");
  });

  test("never tell the key", () => {
    const env = { TABLE_NAME: "", MODEL: "x", MODEL_API_KEY: "sk-secret" };
    expect(refusalOf(env)).not.toContain("sk-secret");
  });

  test.each([{}, { TABLE_NAME: "" }])("miss the table: %j", (env) => {
    expect(refusalOf(env)).toContain("TABLE_NAME is missing");
  });

  test("tell all that is wrong with them together", () => {
    const wrong = {
      DYNAMODB_ENDPOINT: "nowhere",
      SESSION_LIFETIME_SECONDS: "0",
      MODEL: "gpt",
      MAX_STEPS: "many",
      MAX_INPUT_BYTES: "-5",
      LEASE_SECONDS: "0",
    };
    const refusal = refusalOf(wrong);
    for (const name of ["TABLE_NAME", ...Object.keys(wrong)])
      expect(refusal.split(name)).toHaveLength(2);
  });
});

describe("a function's start", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.resetModules();
  });

  test("reads the environment", async () => {
    vi.resetModules();
    vi.stubEnv("TABLE_NAME", "from-the-environment");
    const { config } = await import("../../functions/config.ts");
    expect(config.tableName).toBe("from-the-environment");
  });

  test("fails where a setting is wrong, and names it", async () => {
    vi.resetModules();
    vi.stubEnv("TABLE_NAME", "");
    vi.stubEnv("MAX_STEPS", "x");
    await expect(import("../../functions/config.ts")).rejects.toThrow(
      /TABLE_NAME is missing.*MAX_STEPS/,
    );
  });
});
