import { describe, expect, test } from "vitest";
import { Agent } from "../../lib/agent/agent.ts";
import { type ToolDefinition, tool } from "../../lib/agent/tool.ts";
import type { JsonObject } from "../../lib/session/json.ts";
import { assistantMessage } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";
import { anyObject, call, resultOf } from "./parts.ts";

const toolOf = (fields: Partial<ToolDefinition<JsonObject, JsonObject>>) =>
  tool({ name: "it", description: "", parameters: anyObject, run: () => "done", ...fields });

const never = () => new Promise(() => {});

describe("a tool with a timeout", () => {
  test("that is over is an error result, and its signal aborts", async () => {
    let signal: AbortSignal | undefined;
    const slow = toolOf({
      timeoutMs: 20,
      run: (_args, context) => {
        signal = context.signal;
        return never();
      },
    });
    expect(await resultOf(slow)).toBe(
      "error: no result within 20 ms; the call may have taken effect",
    );
    expect(signal?.aborted).toBe(true);
  });

  test("gives its result, or its own failure, in time", async () => {
    expect(await resultOf(toolOf({ timeoutMs: 5000 }))).toBe("done");
    const fails = toolOf({
      timeoutMs: 5000,
      run: () => {
        throw new Error("boom");
      },
    });
    expect(await resultOf(fails)).toBe("error: boom");
  });

  test("A08 loses none of the calls beside it", async () => {
    const tools = [toolOf({ name: "slow", timeoutMs: 20, run: never }), toolOf({ name: "quick" })];
    const calls = [call("1", "slow"), call("2", "quick"), call("3", "slow")];
    const model = scriptedModel([assistantMessage("", calls), assistantMessage("ok")]);
    const { messages } = await new Agent({ model, tools }).runTurn(new Session(), "go");
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    expect(results).toEqual([
      expect.stringMatching(/^error: no result within/),
      "done",
      expect.stringMatching(/^error: no result within/),
    ]);
  });
});

describe("a result over its tool's bound", () => {
  const text = "né😀 and more";

  test("is cut between two characters, and says so", async () => {
    const starts = ["", "n", "n", "né", "né", "né", "né", "né😀", "né😀 "];
    for (const [bytes, start] of starts.entries()) {
      if (bytes === 0) continue;
      const cut = toolOf({ maxResultBytes: bytes, run: () => text });
      expect(await resultOf(cut)).toBe(
        `${start}\n[cut: these are the first ${bytes} of ${Buffer.byteLength(text)} bytes]`,
      );
    }
  });

  test("is an error, by setting", async () => {
    const refused = toolOf({ maxResultBytes: 8, largeResult: "refuse", run: () => text });
    expect(await resultOf(refused)).toBe(
      "error: the result is 16 bytes, and at most 8 are taken: ask for less",
    );
  });

  test("is as it is where it just fits", async () => {
    for (const it of [text, "\ufeffbom"]) {
      const fits = toolOf({ maxResultBytes: Buffer.byteLength(it), run: () => it });
      expect(await resultOf(fits)).toBe(it);
    }
    const cut = toolOf({ maxResultBytes: 4, run: () => "\ufeffbom" });
    expect(await resultOf(cut)).toMatch(/^\ufeffb\n\[cut/);
  });
});

test.each([0, 1.5, -1, Number.NaN])("bounds of %d are refused", (bound) => {
  expect(() => toolOf({ timeoutMs: bound })).toThrow("timeoutMs must be a whole number, 1 or more");
  expect(() => toolOf({ maxResultBytes: bound })).toThrow(TypeError);
});
