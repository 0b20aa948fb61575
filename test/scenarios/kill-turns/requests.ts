/** What callers ask a runner for, over HTTP. */
import type { Answer, History, Outcome } from "./evidence.ts";
import type { Caller } from "./plan.ts";

export interface Reply {
  readonly status: number;
  readonly body: Answer & { readonly code?: string; readonly replayed: boolean };
}

export interface TurnPost {
  readonly caller: Caller;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Rejects where the connection breaks. */
export const postTurn = async (
  url: string,
  session: string,
  { caller, headers, signal }: TurnPost,
): Promise<Reply> => {
  const { turn, input, onBusy } = caller;
  const response = await fetch(`${url}/v1/sessions/${session}/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": turn, ...headers },
    body: JSON.stringify({ input, on_busy: onBusy }),
    signal,
  });
  const body: Reply["body"] = JSON.parse(await response.text());
  return { status: response.status, body };
};

/** Of a reply that ends its caller's tries. */
export const outcomeOf = ({ status, body }: Reply): Outcome => {
  if (status !== 200) return { kind: "superseded" };
  const { replayed, turn_id, version, finish, final, messages } = body;
  return { kind: "done", replayed, answer: { turn_id, version, finish, final, messages } };
};

export const getHistory = async (url: string, session: string): Promise<History> => {
  const read = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}/v1/sessions/${session}${path}`);
    const value: T = JSON.parse(await response.text());
    return value;
  };
  const [head, turns, messages] = await Promise.all([
    read<History["head"]>(""),
    read<{ data: History["turns"] }>("/turns?limit=1000"),
    read<{ data: History["messages"] }>("/messages?limit=1000"),
  ]);
  return { head, turns: turns.data, messages: messages.data };
};
