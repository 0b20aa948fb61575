/** What the suites of turns are played on: runners that share a store, a model and a clock, and tools that note each run. */
import { setImmediate as tick } from "node:timers/promises";
import { expect } from "vitest";
import { Agent, type AgentOptions } from "../../lib/agent/agent.ts";
import { type Effect, type ToolContext, tool } from "../../lib/agent/tool.ts";
import { assistantMessage, type Message } from "../../lib/session/message.ts";
import type { DoneTurn } from "../../lib/session/turn.ts";
import type { Head, SessionKey, WholeOpenTurn } from "../../lib/store/head.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import type { TurnRequest } from "../../lib/turns/request.ts";
import { createTurns, type Turns, type TurnsOptions } from "../../lib/turns/turns.ts";
import { type SettableClock, settableClock } from "../support/clock.ts";
import { NOW_MS, newKey } from "../support/heads.ts";
import { type ScriptedModel, type ScriptedReply, scriptedModel } from "../support/models.ts";

export interface SceneOptions extends Omit<Partial<AgentOptions>, "model" | "tools"> {
  readonly replies?: readonly ScriptedReply[];
  /** Of the model. */
  readonly provider?: string;
  /** What a tool does; it returns `<name> done` by default. */
  readonly does?: (name: string, context: ToolContext) => unknown;
}

export interface Scene {
  readonly key: SessionKey;
  readonly clock: SettableClock;
  readonly model: ScriptedModel;
  readonly agent: Agent;
  /** Each start of a tool, in order. */
  readonly ran: { readonly name: string; readonly key: string }[];
  /** A process of its own. `through` stands in for methods of its store. */
  runner(through?: Partial<SessionStore>, options?: Partial<TurnsOptions>): Turns;
  head(): Promise<Head>;
  /** The open turn with its steps. */
  open(): Promise<WholeOpenTurn | undefined>;
  history(): Promise<DoneTurn[]>;
  messages(): Promise<Message[]>;
}

/** By name: a tool of each effect. */
const EFFECTS: Record<string, Effect> = { read: "none", put: "idempotent", pay: "once" };

export const scene = (
  store: SessionStore,
  {
    replies = Array.from({ length: 99 }, () => steps()),
    provider,
    does,
    ...options
  }: SceneOptions = {},
): Scene => {
  const key = newKey();
  const clock = settableClock(NOW_MS);
  const model = scriptedModel(replies, provider);
  const ran: Scene["ran"] = [];
  const tools = Object.entries(EFFECTS).map(([name, effect]) =>
    tool({
      name,
      description: "",
      parameters: { type: "object" },
      effect,
      run: (_args, context) => {
        ran.push({ name, key: context.idempotencyKey });
        return does ? does(name, context) : `${name} done`;
      },
    }),
  );
  const agent = new Agent({ ...options, model, tools });
  const head = async (): Promise<Head> => {
    const there = await store.read(key);
    if (!there) throw new Error("there is no session");
    return there;
  };
  const history = async () => {
    const it = await head();
    return store.turns(it, { from: 1, to: it.version });
  };
  return {
    key,
    clock,
    model,
    agent,
    ran,
    runner: (through, more) =>
      createTurns({ agent, clock, store: { ...store, ...through }, ...more }),
    head,
    open: async () => store.openTurn(await head()),
    history,
    messages: async () => (await history()).flatMap(({ messages }) => messages),
  };
};

/** What is asked where it makes no difference. */
export const REQUEST = { turnId: "k", input: "Hi" };

export const contents = (messages: readonly Message[]): string[] =>
  messages.map(({ content }) => content);

let asked = 0;

/** A message that calls these tools. No two have an id in common, as with a model that is asked again. */
export const calls = (...names: readonly string[]): Message =>
  assistantMessage(
    "",
    names.map((name) => ({ id: `${name}-${++asked}`, name, arguments: { n: asked } })),
  );

export const USAGE = { inputTokens: 10, outputTokens: 1 };

/** A model that calls these tools, step by step, and answers "done" then, however often it is asked. */
export const steps =
  (...plan: readonly (readonly string[])[]) =>
  (messages: readonly Message[]) => {
    const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user"));
    const names = plan[turn.filter(({ role }) => role === "assistant").length];
    return { message: names ? calls(...names) : assistantMessage("done"), usage: USAGE };
  };

export const times = <T>(count: number, it: T): T[] => Array.from({ length: count }, () => it);

/** A place where a runner's process ends: what it waits for never comes. */
export const death = () => {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  const die = (): Promise<never> => {
    resolve();
    return new Promise(() => {});
  };
  return { die, reached };
};

/** A gate in the way of a call. */
export const gate = () => {
  const arrived = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    /** To be awaited by who has to wait. */
    pass: (): Promise<void> => {
      arrived.resolve();
      return opened.promise;
    },
    arrived: arrived.promise,
    open: opened.resolve,
  };
};

/** A scene with a turn that runs: in its tool `pay`, behind a finished step; or in its first call. */
export const busyScene = async (
  store: SessionStore,
  { at = "tool", ...request }: Partial<TurnRequest> & { readonly at?: "tool" | "model" } = {},
  options: SceneOptions = {},
) => {
  const way = gate();
  let held = false;
  const hold = (): Promise<void> | undefined => {
    if (held) return undefined;
    held = true;
    return way.pass();
  };
  const plan = steps(["put"], ["read", "pay"]);
  const it = scene(store, {
    replies: times(99, async (messages) => {
      const isFirst = messages.at(-1)?.content === "long work";
      if (at === "model" && isFirst) await hold();
      return (isFirst || messages.at(-1)?.role === "tool" ? plan : steps())(messages);
    }),
    does: async (tool) => {
      if (at === "tool" && tool === "pay") await hold();
      return `${tool} done`;
    },
    ...options,
  });
  const own = it.runner();
  const running = own.run({ ...it.key, input: "long work", ...request });
  running.catch(() => {});
  await way.arrived;
  await expect.poll(() => it.clock.sleepers()).toBe(1);
  return { ...it, own, running, finish: way.open };
};

/** As the network doubles a request: the second answer is the one that arrives. */
export const sentTwice =
  <Write, Result>(send: (write: Write) => Promise<Result>) =>
  async (write: Write): Promise<Result> => {
    await send(write);
    return send(write);
  };

/** A runner looks at the store, as it does at least so often. */
export const HEARTBEAT_MS = 15_000;

/** Longer than a lease and its margin. */
export const LEASE_OVER_MS = 33_000;

export interface WatchedStore {
  readonly store: SessionStore;
  /** The methods called, in order. */
  readonly calls: string[];
  /** How many of them haven't ended. */
  readonly open: () => number;
}

/** @param before each call waits for it */
export const watchedStore = (
  store: SessionStore,
  before: (method: string) => Promise<void> | undefined = () => undefined,
): WatchedStore => {
  const names: string[] = [];
  let open = 0;
  const watched = new Proxy(store, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return async (...args: unknown[]): Promise<unknown> => {
        names.push(String(name));
        open++;
        try {
          await before(String(name));
          return await Reflect.apply(method, target, args);
        } finally {
          open--;
        }
      };
    },
  });
  return { store: watched, calls: names, open: () => open };
};

/** Whatever can happen without anything from outside has happened then. */
export const quiet = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await tick();
};
