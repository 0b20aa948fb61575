import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { type ToolContext, tool } from "../../lib/agent/tool.ts";
import type { JsonValue } from "../../lib/session/json.ts";
import { assistantMessage, type ToolCall, toolMessage } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { addCall, addTool, anyObject, call, shape } from "./parts.ts";

describe("tool calls", () => {
  const resultsOf = async (agent: Agent): Promise<string[]> => {
    const { messages } = await agent.runTurn(new Session(), "go");
    return messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  };
  const asks = (...calls: ToolCall[]) =>
    scriptedModel([assistantMessage("", calls), assistantMessage("done")]);

  test("A08 run at the same time, one throws, and the results stand in call order", async () => {
    const lastIsDone = Promise.withResolvers<void>();
    const tools = [
      tool({
        name: "slow",
        description: "",
        parameters: anyObject,
        run: async () => {
          await lastIsDone.promise;
          return "slow";
        },
      }),
      tool({
        name: "throws",
        description: "",
        parameters: anyObject,
        run: () => {
          throw new Error("boom");
        },
      }),
      tool({
        name: "last",
        description: "",
        parameters: anyObject,
        run: () => lastIsDone.resolve(),
      }),
    ];
    const session = new Session();
    const model = asks(call("1", "slow"), call("2", "throws"), call("3", "last"));
    const { steps } = await new Agent({ model, tools }).runTurn(session, "go");
    expect(session.messages.slice(2)).toStrictEqual([
      toolMessage("1", "slow"),
      toolMessage("2", "error: boom"),
      toolMessage("3", ""),
      assistantMessage("done"),
    ]);
    expect(steps.map(({ index, detail }) => `${index} ${detail}`)).toEqual([
      "0 slow -> slow",
      "0 throws -> error: boom",
      "0 last -> ",
      "1 done",
    ]);
  });

  test.each(["nope", "constructor", "__proto__", "toString", "", "Add"])(
    "A13 to a tool %j that there isn't get an error result, and the turn goes on",
    async (name) => {
      const model = asks(call("c1", name), addCall);
      expect(await resultsOf(new Agent({ model, tools: [addTool] }))).toEqual([
        `error: there is no tool named ${JSON.stringify(name)}; there are: add`,
        "3",
      ]);
      expect(await resultsOf(new Agent({ model: asks(call("c1", name)) }))).toEqual([
        `error: there is no tool named ${JSON.stringify(name)}; there are: none`,
      ]);
    },
  );

  test.each(["", '{"cmd":"ls', null, [], 5])(
    "C10 with the arguments %j get an error result, and the raw arguments are kept",
    async (args) => {
      const session = new Session();
      const model = asks(call("c1", "add", args));
      await new Agent({ model, tools: [addTool] }).runTurn(session, "go");
      expect(session.messages[1]?.toolCalls[0]?.arguments).toStrictEqual(args);
      expect(session.messages[2]?.toolCallId).toBe("c1");
      expect(session.messages[2]?.content).toMatch(/^error: invalid arguments: /);
      expect(model.calls).toHaveLength(2);
    },
  );

  test("have an answer too where two have the same id", async () => {
    const model = asks(addCall, { ...addCall, arguments: { a: 3, b: 4 } });
    expect(await resultsOf(new Agent({ model, tools: [addTool] }))).toEqual(["3", "7"]);
    expect(shape(model.calls[1]?.messages ?? [])).toBe("user:go | assistant: | tool:3 | tool:7");
  });

  test("have ids of their own in the history, where the model gives none or one twice", async () => {
    const model = asks(call("", "add"), call("", "add"), call("c1", "add"), call("c1", "add"));
    const { messages } = await new Agent({ model, tools: [addTool] }).runTurn(new Session(), "go");
    const ids = messages[1]?.toolCalls.map(({ id }) => id) ?? [];
    expect(new Set(ids).size).toBe(4);
    expect(ids[2]).toBe("c1");
    expect(ids).not.toContain("");
    expect(messages.slice(2, 6).map(({ toolCallId }) => toolCallId)).toEqual(ids);
  });

  test("can't change the history through their arguments, nor the session through its metadata", async () => {
    const vandal = tool<Record<string, unknown>>({
      name: "vandal",
      description: "",
      parameters: anyObject,
      run: (args, { metadata }) => {
        args["list"] = "broken";
        metadata["plan"] = "broken";
      },
    });
    const session = new Session({ metadata: { plan: "free" } });
    const model = asks(call("c1", "vandal", { list: [1] }));
    const called: JsonValue[] = [];
    await new Agent({ model, tools: [vandal] }).runTurn(session, "go", {
      onEvent: (event) =>
        void (event.type === "tool.returned" && called.push(event.call.arguments)),
    });
    expect(session.messages[1]?.toolCalls[0]?.arguments).toStrictEqual({ list: [1] });
    expect(session.metadata).toStrictEqual({ plan: "free" });
    expect(called).toStrictEqual([{ list: [1] }]);
  });

  describe("are told", () => {
    const contexts: ToolContext[] = [];
    const note = tool({
      name: "note",
      description: "",
      parameters: anyObject,
      run: (_args, context) => void contexts.push(context),
    });
    const twice = () =>
      scriptedModel([
        assistantMessage("", [call("c1", "note"), call("c1", "note")]),
        assistantMessage("", [call("c1", "note")]),
        assistantMessage("done"),
      ]);
    const contextsOf = async (
      session: Session,
      options: { turnId?: string; idempotencyScope?: string },
    ) => {
      contexts.length = 0;
      await new Agent({ model: twice(), tools: [note] }).runTurn(session, "go", options);
      return [...contexts];
    };
    const keysOf = async (
      session: Session,
      options: { turnId?: string; idempotencyScope?: string },
    ) => (await contextsOf(session, options)).map(({ idempotencyKey }) => idempotencyKey);

    test("their session, its metadata, and their turn", async () => {
      const session = new Session({ sessionId: "s1", metadata: { plan: "free" } });
      for (const context of await contextsOf(session, { turnId: "t1" })) {
        expect(context).toMatchObject({
          sessionId: "s1",
          turnId: "t1",
          metadata: { plan: "free" },
        });
        expect(context.signal.aborted).toBe(false);
      }
      const [first] = await contextsOf(session, {});
      const [second] = await contextsOf(session, {});
      expect(first?.turnId).not.toBe(second?.turnId);
    });

    test("an idempotency key that is the same for the same call and for no other", async () => {
      const life = { turnId: "t1", idempotencyScope: "life 1" };
      const keys = await keysOf(new Session({ sessionId: "s1" }), life);
      expect(keys).toHaveLength(3);
      expect(await keysOf(new Session({ sessionId: "s1" }), life)).toEqual(keys);
      expect(keys.filter((key) => /^[0-9a-f]{64}$/.test(key))).toHaveLength(3);

      const others = [
        await keysOf(new Session({ sessionId: "s1" }), { ...life, turnId: "t2" }),
        await keysOf(new Session({ sessionId: "s1" }), { ...life, idempotencyScope: "life 2" }),
        await keysOf(new Session({ sessionId: "s1" }), { turnId: "t1" }),
        await keysOf(new Session({ sessionId: "s2" }), { turnId: "t1" }),
        await keysOf(new Session({ sessionId: "s1" }), {}),
        await keysOf(new Session({ sessionId: "s1" }), {}),
        await keysOf(new Session(), { turnId: "c", idempotencyScope: "a,b" }),
        await keysOf(new Session(), { turnId: "b,c", idempotencyScope: "a" }),
      ];
      expect(new Set([keys, ...others].flat()).size).toBe(27);
    });
  });
});
