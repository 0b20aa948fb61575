import { describe, expect, test } from "vitest";
import { Agent, type AgentOptions } from "../../lib/agent/agent.ts";
import type { Journal } from "../../lib/agent/journal.ts";
import { OUTCOME_UNKNOWN } from "../../lib/agent/results.ts";
import { type Effect, tool } from "../../lib/agent/tool.ts";
import { assistantMessage, type ToolCall } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import type { TurnStep } from "../../lib/session/turn.ts";
import { type ScriptedReply, scriptedModel } from "../support/models.ts";
import { anyObject, call } from "./parts.ts";

const usage = { inputTokens: 10, outputTokens: 1 };

const step = (calls: readonly ToolCall[], results: TurnStep["results"]): TurnStep => ({
  message: assistantMessage("", calls),
  usage,
  results,
});

/** A journal, tools and a model that note what happens, in one row. */
const start = (
  replies: readonly ScriptedReply[],
  journal: Partial<Journal> = {},
  options: Partial<AgentOptions> = {},
) => {
  const happened: unknown[] = [];
  const keys: string[] = [];
  const noted = (name: string, effect: Effect) =>
    tool({
      name,
      description: "",
      parameters: anyObject,
      effect,
      run: (_args, { idempotencyKey }) => {
        happened.push(name);
        keys.push(`${name} ${idempotencyKey}`);
        return `${name} done`;
      },
    });
  const model = scriptedModel(
    replies.map((reply) => (...asked) => {
      happened.push("model");
      if (reply instanceof Error) throw reply;
      return typeof reply === "function" ? reply(...asked) : reply;
    }),
  );
  const agent = new Agent({
    tools: [noted("read", "none"), noted("put", "idempotent"), noted("pay", "once")],
    ...options,
    model,
  });
  const session = new Session({ sessionId: "s1" });
  const run = (signal?: AbortSignal) =>
    agent.runTurn(session, "go", {
      turnId: "t1",
      ...(signal ? { signal } : {}),
      journal: {
        steps: [],
        begin: async (_step, effects) => void happened.push(`begin, effects: ${effects}`),
        check: () => void happened.push("check"),
        progress: () => {},
        finish: async (index, results) => void happened.push([index, ...results]),
        ...journal,
      },
    });
  return { run, happened, keys, model, session };
};

const answer = assistantMessage("done");
const contents = ({ messages }: Session) => messages.map(({ content }) => content);

describe("an agent with a journal", () => {
  test("tells of each tool with an effect that ends while another one runs, and of no other", async () => {
    const told: unknown[] = [];
    const progress: Journal["progress"] = (...progressed) => void told.push(progressed);
    const calls = [call("a", "read"), call("b", "pay"), call("c", "put")];
    const { run } = start([assistantMessage("", calls), answer], { progress });
    await run();
    expect(told).toEqual([[0, [expect.any(String), expect.any(String), null]]]);

    told.length = 0;
    const kept = step(calls, [null, null, "put done"]);
    await start([answer], { progress, steps: [kept] }).run();
    expect(told).toEqual([]);
  });

  test("begins each step before its tools, checks before each of them, and finishes it before the model is asked again", async () => {
    const { run, happened } = start([
      assistantMessage("", [call("a", "read"), call("b", "pay")]),
      assistantMessage("", [call("c", "read"), call("d", "nope")]),
      answer,
    ]);
    await run();
    expect(happened).toEqual([
      ...["model", "begin, effects: true", "check", "check", "read", "pay"],
      [0, "read done", "pay done"],
      ...["model", "begin, effects: false", "check", "check", "read"],
      [1, "read done", 'error: there is no tool named "nope"; there are: read, put, pay'],
      "model",
    ]);
  });

  test("begins a step with the model's message, its usage, and no results", async () => {
    const begun: TurnStep[] = [];
    const message = assistantMessage("", [call("a", "put"), call("b", "read")]);
    const { run } = start([{ message, usage }, answer], {
      begin: async (it) => void begun.push(it),
    });
    await run();
    expect(begun).toEqual([{ message, usage, results: [null, null] }]);
  });

  test("runs no tool of a step that can't be begun", async () => {
    const refusal = new Error("not kept");
    const { run, happened, session } = start([assistantMessage("", [call("a", "read")])], {
      begin: () => Promise.reject(refusal),
    });
    await expect(run()).rejects.toBe(refusal);
    expect(happened).toEqual(["model"]);
    expect(session.messages).toEqual([]);
  });

  test("doesn't start the tools that the check forbids", async () => {
    const refusal = new Error("the lease is over");
    const { run, happened } = start([assistantMessage("", [call("a", "read")])], {
      check: () => {
        throw refusal;
      },
    });
    await expect(run()).rejects.toBe(refusal);
    expect(happened).toEqual(["model", "begin, effects: false"]);
  });

  test("asks the model while the results are being kept, and begins nothing before they are", async () => {
    const kept = Promise.withResolvers<void>();
    let isKept = false;
    const { run, model } = start(
      [
        assistantMessage("", [call("a", "pay")]),
        () => {
          setImmediate(() => {
            isKept = true;
            kept.resolve();
          });
          return assistantMessage("", [call("b", "pay")]);
        },
        answer,
      ],
      {
        begin: async () => expect([model.calls.length, isKept]).not.toEqual([2, false]),
        finish: (index) => (index === 0 ? kept.promise : Promise.resolve()),
      },
    );
    await run();
    expect(model.calls).toHaveLength(3);
  });

  test.each([
    ["answers", [assistantMessage("", [call("a", "pay")]), answer], 8],
    ["has no steps left", [assistantMessage("", [call("a", "pay")])], 1],
  ])(
    "fails where its last results can't be kept, also if it %s",
    async (_how, replies, maxSteps) => {
      const refusal = new Error("not kept");
      const journal = { finish: () => Promise.reject(refusal) };
      const { run, session } = start(replies, journal, { maxSteps });
      await expect(run()).rejects.toBe(refusal);
      expect(session.messages).toEqual([]);
    },
  );

  test("keeps the results of those tools that were done when the turn had to end", async () => {
    const caller = new AbortController();
    const slow = tool({
      name: "slow",
      description: "",
      parameters: anyObject,
      run: () => {
        setImmediate(() => caller.abort(new Error("time is over")));
        return new Promise(() => {});
      },
    });
    const quick = tool({
      name: "quick",
      description: "",
      parameters: anyObject,
      run: () => "done",
    });
    const { run, happened } = start(
      [assistantMessage("", [call("a", "quick"), call("b", "slow")])],
      {},
      { tools: [slow, quick] },
    );
    await expect(run(caller.signal)).rejects.toThrow("time is over");
    expect(happened.at(-1)).toEqual([0, "done", null]);
  });
});

describe("steps that an earlier try has kept", () => {
  test("aren't asked for again, and finished calls aren't repeated", async () => {
    const kept = step([call("a", "pay"), call("b", "read")], ["paid", "seen"]);
    const { run, happened, session, model } = start([{ message: answer, usage }], {
      steps: [kept],
    });
    const result = await run();
    expect(happened).toEqual([[0, "paid", "seen"], "model"]);
    expect(contents(session)).toEqual(["go", "", "paid", "seen", "done"]);
    expect(session.messages[1]).toEqual(kept.message);
    expect(model.calls[0]?.messages).toEqual(session.messages.slice(0, -1));
    expect(result.usage).toEqual({ inputTokens: 20, outputTokens: 2 });
  });

  test("follow their tools' effects where a call wasn't finished, and aren't begun again", async () => {
    const calls = [call("a", "read"), call("b", "put"), call("c", "pay"), call("d", "pay")];
    const { run, happened, session } = start([answer], {
      steps: [step(calls, [null, null, null, "paid"])],
    });
    await run();
    const results = ["read done", "put done", OUTCOME_UNKNOWN, "paid"];
    expect(happened).toEqual(["check", "check", "read", "put", [0, ...results], "model"]);
    expect(contents(session)).toEqual(["go", "", ...results, "done"]);
  });

  test("give a call that runs again the key that it had", async () => {
    const put = call("a", "put", { n: 1 });
    const first = start([assistantMessage("", [put]), answer]);
    await first.run();
    const second = start([answer], { steps: [step([put], [null])] });
    await second.run();
    expect(second.keys).toEqual(first.keys);
    const elsewhere = start([answer], {
      steps: [step([call("x", "read")], ["seen"]), step([put], [null])],
    });
    await elsewhere.run();
    expect(elsewhere.keys).not.toEqual(first.keys);
  });

  test("leave the outcome of a tool unknown that isn't there any more", async () => {
    const { run, session } = start([answer], { steps: [step([call("a", "gone")], [null])] });
    await run();
    expect(contents(session)).toEqual(["go", "", OUTCOME_UNKNOWN, "done"]);
  });

  test("count among the turn's steps, and stand in the history though there may be fewer now", async () => {
    const pay = step([call("a", "pay")], ["paid"]);
    const { run, session, model } = start([], { steps: [pay, pay] }, { maxSteps: 1 });
    expect(await run()).toMatchObject({ finish: "max_steps" });
    expect(contents(session)).toEqual(["go", "", "paid", "", "paid"]);
    expect(model.calls).toEqual([]);
  });
});
