/** What Converse refuses, and what the models behind it do. */
import { isPlainObject } from "../../../lib/session/json.ts";
import type { WireMessage, WireRequest } from "../wire.ts";

export type Asked = Omit<WireRequest, "isAborted" | "streamed">;

/** Broken rules, as the server words them. */
export class Refused extends Error {}

/**
 * @param told signatures and redacted reasoning that the server gave: no others are taken back
 * @throws {Refused}
 */
export const checkedRequest = (body: unknown, told: ReadonlySet<string>): Asked => {
  const request = fieldsOf(
    body,
    "the request",
    "messages system inferenceConfig toolConfig additionalModelRequestFields",
  );
  const turns = list(request["messages"], "messages").map((message, at) =>
    checkedTurn(message, `messages.${at}`, told),
  );
  checkTurns(turns);
  const { system, toolConfig, inferenceConfig } = request;
  if (inferenceConfig !== undefined) checkInference(inferenceConfig);
  const usesTools = turns.some(({ calls, results }) => calls.length + results.length > 0);
  need(
    !usesTools || toolConfig !== undefined,
    "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
  );
  return {
    system: system === undefined ? "" : checkedSystem(system).join("\n"),
    messages: turns.flatMap(wireMessages),
    tools: toolConfig === undefined ? [] : checkedTools(toolConfig),
  };
};

interface Turn {
  readonly role: "user" | "assistant";
  readonly texts: readonly string[];
  readonly calls: readonly { id: string; name: string; arguments: unknown }[];
  readonly results: readonly { id: string; text: string }[];
  readonly reasoning: readonly { text: string; signature: string }[];
  /** The kinds of its blocks, in order. */
  readonly kinds: readonly string[];
}

const checkedTurn = (value: unknown, at: string, told: ReadonlySet<string>): Turn => {
  const { role, content } = fieldsOf(value, at, "role content");
  need(role === "user" || role === "assistant", `${at}.role isn't known`);
  const blocks = list(content, `${at}.content`).map((block, index) => {
    const where = `${at}.content.${index}`;
    const entries = Object.entries(fieldsOf(block, where, BLOCKS[role]));
    const [[kind, inner] = ["nothing", undefined]] = entries;
    need(entries.length === 1, `${where} must have one member`);
    return { kind, inner, where: `${where}.${kind}` };
  });
  const of = <T>(kind: string, read: (inner: unknown, where: string) => T): T[] =>
    blocks.filter((block) => block.kind === kind).map(({ inner, where }) => read(inner, where));
  return {
    role,
    texts: of("text", filledText),
    calls: of("toolUse", checkedCall),
    results: of("toolResult", checkedResult),
    reasoning: of("reasoningContent", (inner, where) =>
      checkedReasoning(inner, where, told),
    ).flat(),
    kinds: blocks.map(({ kind }) => kind),
  };
};

const BLOCKS = { user: "text toolResult", assistant: "text toolUse reasoningContent" };

const checkedCall = (value: unknown, at: string) => {
  const { toolUseId, name, input } = fieldsOf(value, at, "toolUseId name input");
  need(isPlainObject(input), `The format of the value at ${at}.input is invalid`);
  return {
    id: identifier(toolUseId, `${at}.toolUseId`),
    name: identifier(name, `${at}.name`),
    arguments: input,
  };
};

const checkedResult = (value: unknown, at: string) => {
  const { toolUseId, content, status } = fieldsOf(value, at, "toolUseId content status");
  need([undefined, "success", "error"].includes(status as string), `${at}.status isn't known`);
  const texts = list(content, `${at}.content`).map((part, index) => {
    const where = `${at}.content.${index}`;
    return filledText(fieldsOf(part, where, "text")["text"], where);
  });
  return { id: identifier(toolUseId, `${at}.toolUseId`), text: texts.join("") };
};

const checkedReasoning = (value: unknown, at: string, told: ReadonlySet<string>) => {
  const { reasoningText, redactedContent } = fieldsOf(value, at, "reasoningText redactedContent");
  if (redactedContent !== undefined) {
    need(reasoningText === undefined, `${at} must have one member`);
    need(told.has(text(redactedContent, at)), `${at} is nothing that this model gave`);
    return [];
  }
  const given = fieldsOf(reasoningText, `${at}.reasoningText`, "text signature");
  const thought = text(given["text"], `${at}.text`);
  const signature = text(given["signature"], `${at}.signature`);
  need(told.has(signature), `${at}: Invalid signature in thinking block`);
  return [{ text: thought, signature }];
};

const checkTurns = (turns: readonly Turn[]): void => {
  need(turns[0]?.role === "user", "A conversation must start with a user message.");
  need(turns.at(-1)?.role === "user", "The conversation must end with a user message.");
  const ids = new Set<string>();
  for (const [at, { role, calls, results, kinds, texts }] of turns.entries()) {
    const before = turns[at - 1];
    need(role !== before?.role, "roles must alternate between user and assistant");
    for (const { id } of calls) {
      need(!ids.has(id), `messages.${at}: toolUse ids must be unique: ${id}`);
      ids.add(id);
    }
    const asked = (before?.calls ?? []).map(({ id }) => id);
    const got = results.map(({ id }) => id);
    need(got.length <= asked.length, `messages.${at}: more toolResult than toolUse blocks`);
    need(
      asked.every((id) => got.includes(id)) && new Set(got).size === got.length,
      `Expected toolResult blocks at messages.${at}.content for the following Ids: ${asked.join()}`,
    );
    const inFront = kinds.slice(0, got.length);
    need(role === "assistant" || inFront.every(isResult), `messages.${at}: results come first`);
    need(role === "user" || kinds.some((kind) => kind !== "reasoningContent"), "only reasoning");
    const lastText = role === "assistant" ? (texts.at(-1) ?? "") : "";
    need(lastText === lastText.trimEnd(), "assistant content cannot end with trailing whitespace");
  }
};

const isResult = (kind: string): boolean => kind === "toolResult";

const checkedSystem = (value: unknown): string[] =>
  list(value, "system").map((block, at) =>
    filledText(fieldsOf(block, `system.${at}`, "text")["text"], `system.${at}.text`),
  );

const checkedTools = (value: unknown): WireRequest["tools"] => {
  const tools = list(fieldsOf(value, "toolConfig", "tools")["tools"], "toolConfig.tools");
  const read = tools.map((tool, index) => {
    const at = `toolConfig.tools.${index}.toolSpec`;
    const spec = fieldsOf(
      fieldsOf(tool, at, "toolSpec")["toolSpec"],
      at,
      "name description inputSchema",
    );
    const { description } = spec;
    const parameters = fieldsOf(spec["inputSchema"], `${at}.inputSchema`, "json")["json"];
    need(isPlainObject(parameters) && parameters["type"] === "object", `${at}: no object schema`);
    return {
      name: identifier(spec["name"], `${at}.name`),
      description: description === undefined ? "" : filledText(description, `${at}.description`),
      parameters,
    };
  });
  need(new Set(read.map(({ name }) => name)).size === read.length, "tool names must be unique");
  return read;
};

const checkInference = (value: unknown): void => {
  const { maxTokens = 1, temperature = 0 } = fieldsOf(
    value,
    "inferenceConfig",
    "maxTokens temperature",
  );
  need(Number.isInteger(maxTokens) && Number(maxTokens) >= 1, "inferenceConfig.maxTokens");
  need(typeof temperature === "number" && temperature >= 0 && temperature <= 1, "temperature");
};

const wireMessages = ({ role, texts, calls, results, reasoning }: Turn): WireMessage[] => {
  const said = texts.join("\n");
  if (role === "assistant") {
    const [first] = reasoning;
    return [{ role, text: said, calls, ...(first ? { reasoning: first } : {}) }];
  }
  const answered = results.map((result): WireMessage => ({ role: "tool", ...result }));
  return said === "" ? answered : [...answered, { role, text: said }];
};

function need(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Refused(message);
}

const fieldsOf = (value: unknown, at: string, known: string): Record<string, unknown> => {
  need(isPlainObject(value), `${at} must be an object`);
  const strange = Object.keys(value).find((key) => !known.split(" ").includes(key));
  need(strange === undefined, `${at}: extraneous key [${strange}] is not permitted`);
  return value;
};

const list = (value: unknown, at: string): unknown[] => {
  need(Array.isArray(value) && value.length > 0, `The ${at} field is empty.`);
  return value;
};

const text = (value: unknown, at: string): string => {
  need(typeof value === "string" && value.isWellFormed(), `${at} must be a string`);
  return value;
};

const filledText = (value: unknown, at: string): string => {
  const given = text(value, at);
  need(given.trim() !== "", `The text field in the ContentBlock object at ${at} is blank.`);
  return given;
};

const identifier = (value: unknown, at: string): string => {
  const given = text(value, at);
  need(/^[a-zA-Z0-9_-]{1,64}$/.test(given), `Value '${given}' at '${at}' failed the pattern`);
  return given;
};
