/** A conversation long enough that most of its turns have left HEAD, and pages of it. */
import { tool } from "../../lib/agent/tool.ts";
import type { HttpHandler } from "../../lib/http/handler.ts";
import { isPlainObject } from "../../lib/session/json.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { call, type Reply, type Sent, type Service, service } from "../support/http.ts";

export interface Talk {
  readonly id: string;
  /** What each turn was asked with and answered, in order. */
  readonly turns: readonly { readonly sent: Sent; readonly json: Reply["json"] }[];
}

/** A service whose agent looks everything up before it answers: about 1.5 KB a turn. */
export const talkative = (store: SessionStore): Service =>
  service({
    store,
    tools: [
      tool({
        name: "look",
        description: "looks something up",
        parameters: {},
        run: () => `found "${"y".repeat(900)}"`,
      }),
    ],
    replies: Array.from({ length: 1000 }, () => lookUpThenAnswer),
  });

const lookUpThenAnswer = (messages: readonly Message[]): Message => {
  const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
  return messages.at(-1)?.role === "tool"
    ? assistantMessage(`answer to ${asked.slice(0, 20)} ${"z".repeat(200)}`)
    : assistantMessage("", [{ id: "c", name: "look", arguments: { for: asked.slice(0, 20) } }]);
};

export const question = (id: string, key: string, fields: object = {}): Sent => ({
  method: "POST",
  path: `/v1/sessions/${id}/turns`,
  headers: { "idempotency-key": key },
  body: { input: `question ${key} ${"x".repeat(200)}`, ...fields },
});

/** Of 46 turns, k-1 to k-46. k-45 takes the place of k-10, and k-46 that of k-44. */
export const longTalk = async ({ handler, clock }: Service, id: string): Promise<Talk> => {
  const turns: { sent: Sent; json: Reply["json"] }[] = [];
  for (let n = 1; n <= 46; n++) {
    const fields = n === 45 ? { supersedes: "k-10" } : n === 46 ? { supersedes: "k-44" } : {};
    const sent = question(id, `k-${n}`, fields);
    clock.advance(1000);
    const { status, json } = await call(handler, sent);
    if (status !== 200) throw new Error(JSON.stringify(json));
    turns.push({ sent, json });
  }
  return { id, turns };
};

/** The messages of these turns in a row, without those of the turns named. */
export const messagesOf = (turns: Talk["turns"], without: readonly string[] = []): unknown[] =>
  turns
    .filter(({ json }) => !without.includes(String(json["turn_id"])))
    .flatMap(({ json }) => dataOf(json["messages"]));

export const dataOf = (value: unknown): unknown[] => {
  if (!Array.isArray(value)) throw new Error(`must be a list: ${JSON.stringify(value)}`);
  return value;
};

export const fieldsOf = (value: unknown): Record<string, unknown> => {
  if (!isPlainObject(value)) throw new Error(`must be an object: ${JSON.stringify(value)}`);
  return value;
};

type Query = Record<string, string>;

/** All pages from the first, or from the cursor in the query, on. */
export const pagesOf = async (
  handler: HttpHandler,
  sent: Sent,
  query: Query = {},
): Promise<unknown[][]> => {
  const pages: unknown[][] = [];
  for (let cursor: unknown = query["cursor"]; ; ) {
    const asked = { ...query, ...(typeof cursor === "string" ? { cursor } : {}) };
    const { status, json } = await call(handler, { ...sent, query: asked });
    if (status !== 200) throw new Error(JSON.stringify(json));
    pages.push(dataOf(json["data"]));
    cursor = json["next_cursor"];
    if ((cursor === null) === json["has_more"]) throw new Error("has_more must tell of a cursor");
    if (cursor === null) return pages;
    if (pages.length > 1000) throw new Error("the pages don't end");
  }
};

export const allOf = async (handler: HttpHandler, sent: Sent, query: Query = {}) =>
  (await pagesOf(handler, sent, query)).flat();
