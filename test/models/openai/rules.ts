/** What OpenAI's chat completions refuse, and what servers that speak the same are stricter in. */
import { isPlainObject } from "../../../lib/session/json.ts";
import type { WireMessage, WireRequest } from "../wire.ts";

export type Asked = Omit<WireRequest, "isAborted"> & { readonly wantsUsage: boolean };

/** Broken rules, as the server words them. */
export class Refused extends Error {}

/**
 * @param told what the server gave as reasoning or signature: nothing else of the kind is taken back
 * @throws {Refused}
 */
export const checkedRequest = (body: unknown, told: ReadonlySet<string>): Asked => {
  const request = fieldsOf(body, "body", REQUEST_FIELDS);
  text(request["model"], "model");
  const streamed = request["stream"] === true;
  const streamOptions = request["stream_options"];
  need(streamOptions === undefined || streamed, "stream_options without stream");
  const messages = list(request["messages"], "messages").map((message, at) =>
    checkedMessage(message, `messages[${at}]`, told),
  );
  checkPairs(messages);
  const systems = messages.filter(({ role }) => role === "system");
  need(systems.length <= 1 && (messages[0]?.role === "system" || systems.length === 0), SYSTEM);
  return {
    streamed,
    wantsUsage: isPlainObject(streamOptions) && streamOptions["include_usage"] === true,
    system: systems.map((message) => message.text).join(),
    messages: messages.filter((message) => message.role !== "system"),
    tools: request["tools"] === undefined ? [] : checkedTools(request["tools"]),
  };
};

const REQUEST_FIELDS =
  "model messages tools tool_choice max_tokens temperature stream stream_options reasoning_effort";

const SYSTEM = "the system message stands first, and alone";

type Checked = WireMessage | { readonly role: "system"; readonly text: string };

const checkedMessage = (value: unknown, at: string, told: ReadonlySet<string>): Checked => {
  const role = isPlainObject(value) ? value["role"] : undefined;
  switch (role) {
    case "system":
    case "user": {
      const message = fieldsOf(value, at, "role content");
      return { role, text: text(message["content"], `${at}.content`) };
    }
    case "tool": {
      const message = fieldsOf(value, at, "role content tool_call_id");
      const id = text(message["tool_call_id"], `${at}.tool_call_id`);
      return { role, id, text: text(message["content"], `${at}.content`) };
    }
    case "assistant":
      return assistant(fieldsOf(value, at, "role content tool_calls reasoning_content"), at, told);
    default:
      throw new Refused(`${at}.role isn't known`);
  }
};

const assistant = (
  message: Record<string, unknown>,
  at: string,
  told: ReadonlySet<string>,
): WireMessage => {
  const { content, tool_calls: given, reasoning_content: reasoning } = message;
  const calls = given === undefined ? [] : list(given, `${at}.tool_calls`);
  const isSilent = content === null && calls.length > 0;
  const said = isSilent ? "" : text(content, `${at}.content`);
  const signatures: string[] = [];
  const checked = calls.map((value, index) => {
    const path = `${at}.tool_calls[${index}]`;
    const call = fieldsOf(value, path, "id type function extra_content");
    need(call["type"] === "function", `${path}.type must be function`);
    const called = fieldsOf(call["function"], `${path}.function`, "name arguments");
    if (call["extra_content"] !== undefined) {
      const extra = fieldsOf(call["extra_content"], `${path}.extra_content`, "google");
      const google = fieldsOf(extra["google"], `${path}.extra_content.google`, "thought_signature");
      signatures.push(text(google["thought_signature"], `${path}.thought_signature`));
    }
    return {
      id: text(call["id"], `${path}.id`),
      name: nameOf(called["name"], `${path}.function.name`),
      arguments: argumentsOf(called["arguments"], `${path}.function.arguments`),
    };
  });
  if (reasoning === undefined) return { role: "assistant", text: said, calls: checked };
  const known = { text: text(reasoning, `${at}.reasoning_content`), signature: signatures.join() };
  for (const part of [known.text, ...signatures]) {
    need(told.has(part), `${at}: what wasn't told can't come back`);
  }
  return { role: "assistant", text: said, calls: checked, reasoning: known };
};

/** Each call has its result right behind it, each result its call, and no id is met twice. */
const checkPairs = (messages: readonly Checked[]): void => {
  const met = new Set<string>();
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      need(open.delete(message.id), `a result of ${message.id}, which isn't asked for here`);
      continue;
    }
    need(open.size === 0, `no result of ${[...open].join()} right behind the call`);
    const ids = message.role === "assistant" ? message.calls.map(({ id }) => id) : [];
    for (const id of ids) {
      need(!met.has(id), `${id} is met twice`);
      met.add(id);
    }
    open = new Set(ids);
  }
  need(open.size === 0, `no result of ${[...open].join()}`);
};

const checkedTools = (value: unknown): WireRequest["tools"] => {
  const tools = list(value, "tools").map((item, index) => {
    const path = `tools[${index}]`;
    const { type, function: given } = fieldsOf(item, path, "type function");
    need(type === "function", `${path}.type must be function`);
    const called = fieldsOf(given, `${path}.function`, "name description parameters");
    const { description, parameters } = called;
    need(isPlainObject(parameters) && parameters["type"] === "object", `${path}.parameters`);
    return {
      name: nameOf(called["name"], `${path}.function.name`),
      description: text(description, `${path}.function.description`),
      parameters,
    };
  });
  need(new Set(tools.map(({ name }) => name)).size === tools.length, "two tools of one name");
  return tools;
};

const argumentsOf = (value: unknown, path: string): unknown => {
  const parsed = parsedJson(text(value, path));
  need(isPlainObject(parsed), `${path} must hold a JSON object`);
  return parsed;
};

export const parsedJson = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
};

const nameOf = (value: unknown, path: string): string => {
  const name = text(value, path);
  need(/^[a-zA-Z0-9_-]{1,64}$/.test(name), `${path} doesn't match the pattern`);
  return name;
};

const text = (value: unknown, path: string): string => {
  if (typeof value !== "string" || value.trim() === "") throw new Refused(`${path} has no text`);
  return value;
};

const list = (value: unknown, path: string): readonly unknown[] => {
  if (!Array.isArray(value) || value.length === 0) throw new Refused(`${path} must be a list`);
  return value;
};

const fieldsOf = (value: unknown, path: string, known: string): Record<string, unknown> => {
  if (!isPlainObject(value)) throw new Refused(`${path} must be an object`);
  for (const key of Object.keys(value)) {
    need(known.split(" ").includes(key), `Unrecognized request argument: ${path}.${key}`);
  }
  return value;
};

function need(isKept: boolean, rule: string): asserts isKept {
  if (!isKept) throw new Refused(rule);
}
