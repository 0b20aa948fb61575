/**
 * The arguments of calls, letter by letter. The SDK reads them as a document: it loses the key
 * `__proto__`, and gives numbers that JavaScript can't hold in forms of its own.
 */
import { buffer } from "node:stream/consumers";
import type { ConverseCommand } from "@aws-sdk/client-bedrock-runtime";

/** @returns the answer's body, once the command was answered */
export const keepingBody = (command: ConverseCommand): (() => Uint8Array) => {
  let body = new Uint8Array();
  command.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const response = result.response as { body: AsyncIterable<Uint8Array> | Uint8Array };
      if (!(response.body instanceof Uint8Array)) response.body = await buffer(response.body);
      body = Uint8Array.from(response.body);
      return result;
    },
    { step: "deserialize", priority: "low", name: "keepBody" },
  );
  return () => body;
};

/** As JSON text, by the place of their block; undefined for a block that is no call. */
export const inputsIn = (body: Uint8Array): (string | undefined)[] => {
  const answer = JSON.parse(new TextDecoder().decode(body), keepLetters) as Answer;
  const content = answer.output?.message?.content ?? [];
  return content.map((block) => JSON.stringify(block.toolUse?.input));
};

/** As much of it as is read here; the SDK has found it sound before. */
interface Answer {
  readonly output?: {
    readonly message?: {
      readonly content?: readonly { readonly toolUse?: { readonly input?: unknown } }[];
    };
  };
}

const keepLetters = (
  _key: string,
  value: unknown,
  { source }: { source?: string } = {},
): unknown => (typeof value === "number" && source !== undefined ? rawJSON(source) : value);

const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };
