import { setImmediate as nextTick } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { Agent } from "../../lib/agent/agent.ts";
import type { AgentEvent } from "../../lib/agent/events.ts";
import { tool } from "../../lib/agent/tool.ts";
import { assistantMessage, userMessage } from "../../lib/session/message.ts";
import { Session } from "../../lib/session/session.ts";
import { scriptedModel } from "../support/models.ts";

const reason = new Error("the caller went away");

/** A session with a history, and what has to hold of it when a turn was aborted. */
const startedSession = () => {
  const session = new Session({
    messages: [userMessage("hi"), assistantMessage("hello")],
    metadata: { a: 1 },
  });
  const before = session.snapshot();
  return { session, expectUntouched: () => expect(session.snapshot()).toStrictEqual(before) };
};

const calls = assistantMessage("", [
  { id: "c1", name: "work", arguments: {} },
  { id: "c2", name: "work", arguments: {} },
]);

const workTool = (run: (signal: AbortSignal) => unknown) =>
  tool({
    name: "work",
    description: "",
    parameters: { type: "object" },
    run: (_args, { signal }) => run(signal),
  });

describe("K07 a turn that is aborted", () => {
  test("before it starts asks no model", async () => {
    const model = scriptedModel([assistantMessage("hi")]);
    const { session, expectUntouched } = startedSession();
    const turn = new Agent({ model }).runTurn(session, "go", { signal: AbortSignal.abort(reason) });
    await expect(turn).rejects.toBe(reason);
    expect(model.calls).toEqual([]);
    expectUntouched();
  });

  test("while the model ignores its signal rejects with the signal's reason, and hears no more of the model", async () => {
    const controller = new AbortController();
    const events: AgentEvent[] = [];
    const late = Promise.withResolvers<void>();
    const model = scriptedModel([
      async (_messages, _tools, { onText }) => {
        onText?.("early");
        controller.abort(reason);
        await late.promise;
        onText?.("late");
        throw new Error("nobody listens any more");
      },
    ]);
    const { session, expectUntouched } = startedSession();
    const turn = new Agent({ model }).runTurn(session, "go", {
      signal: controller.signal,
      onEvent: (event) => void events.push(event),
    });
    await expect(turn).rejects.toBe(reason);
    late.resolve();
    await nextTick();
    expect(events).toEqual([
      { type: "step.started", index: 0 },
      { type: "text.delta", delta: "early" },
    ]);
    expectUntouched();
  });

  test("while the model heeds its signal rejects with the signal's reason, not with a failure of the model", async () => {
    const controller = new AbortController();
    const model = scriptedModel([
      (_messages, _tools, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("the request was cancelled")));
          controller.abort(reason);
        }),
    ]);
    const { session, expectUntouched } = startedSession();
    await expect(
      new Agent({ model }).runTurn(session, "go", { signal: controller.signal }),
    ).rejects.toBe(reason);
    expectUntouched();
  });

  test("while the model answers at the last moment is still aborted", async () => {
    const controller = new AbortController();
    const model = scriptedModel([
      () => {
        controller.abort(reason);
        return assistantMessage("too late");
      },
    ]);
    const { session, expectUntouched } = startedSession();
    await expect(
      new Agent({ model }).runTurn(session, "go", { signal: controller.signal }),
    ).rejects.toBe(reason);
    expectUntouched();
  });

  test("A08 while tools never end, or fail later, rejects at once and lets no rejection go unhandled", async () => {
    const controller = new AbortController();
    const late = Promise.withResolvers<never>();
    const runs = [() => new Promise(() => {}), () => late.promise];
    const work = workTool(() => {
      const run = runs.shift();
      if (runs.length === 0) queueMicrotask(() => controller.abort(reason));
      return run?.();
    });
    const model = scriptedModel([calls, assistantMessage("never asked")]);
    const { session, expectUntouched } = startedSession();
    const turn = new Agent({ model, tools: [work] }).runTurn(session, "go", {
      signal: controller.signal,
    });
    await expect(turn).rejects.toBe(reason);
    expect(runs).toEqual([]);
    late.reject(new Error("nobody listens any more"));
    await nextTick();
    expect(model.calls).toHaveLength(1);
    expectUntouched();
  });

  test("by one of its tools starts none of the others", async () => {
    const controller = new AbortController();
    let started = 0;
    const work = workTool(() => {
      started++;
      controller.abort(reason);
    });
    const { session, expectUntouched } = startedSession();
    const turn = new Agent({ model: scriptedModel([calls]), tools: [work] }).runTurn(
      session,
      "go",
      {
        signal: controller.signal,
      },
    );
    await expect(turn).rejects.toBe(reason);
    expectUntouched();
    expect(started).toBe(1);
  });

  test("while arguments are still being checked doesn't run the tool afterwards", async () => {
    const controller = new AbortController();
    const checked = Promise.withResolvers<void>();
    let started = 0;
    const work = tool({
      name: "work",
      description: "",
      parameters: z.object({}).refine(async () => {
        controller.abort(reason);
        await checked.promise;
        return true;
      }),
      run: () => void started++,
    });
    const turn = new Agent({ model: scriptedModel([calls]), tools: [work] }).runTurn(
      new Session(),
      "go",
      {
        signal: controller.signal,
      },
    );
    await expect(turn).rejects.toBe(reason);
    checked.resolve();
    await nextTick();
    expect(started).toBe(0);
  });

  test("by whoever hears of a call doesn't run it", async () => {
    const controller = new AbortController();
    let started = 0;
    const work = workTool(() => void started++);
    const turn = new Agent({ model: scriptedModel([calls]), tools: [work] }).runTurn(
      new Session(),
      "go",
      {
        signal: controller.signal,
        onEvent: ({ type }) => void (type === "tool.called" && controller.abort(reason)),
      },
    );
    await expect(turn).rejects.toBe(reason);
    expect(started).toBe(0);
  });

  test("tells its tools so, with the reason", async () => {
    const controller = new AbortController();
    const told: unknown[] = [];
    const work = workTool((signal) => {
      signal.addEventListener("abort", () => told.push(signal.reason));
      if (told.length === 0) queueMicrotask(() => controller.abort(reason));
      return new Promise(() => {});
    });
    const turn = new Agent({ model: scriptedModel([calls]), tools: [work] }).runTurn(
      new Session(),
      "go",
      {
        signal: controller.signal,
      },
    );
    await expect(turn).rejects.toBe(reason);
    expect(told).toEqual([reason, reason]);
  });
});

test("K07 a turn that returns has nothing running any more", async () => {
  let running = 0;
  const work = workTool(async () => {
    running++;
    await nextTick();
    running--;
    if (running === 0) throw new Error("the last one fails");
  });
  const model = scriptedModel([calls, assistantMessage("done")]);
  const { final } = await new Agent({ model, tools: [work] }).runTurn(new Session(), "go");
  expect(final).toBe("done");
  expect(running).toBe(0);
});

test("a signal that many turns share keeps no listener of a turn that is over", async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const counted = Object.assign(signal, {
    addEventListener: () => void listeners++,
    removeEventListener: () => void listeners--,
  });
  const model = scriptedModel([calls, assistantMessage("done")]);
  await new Agent({ model, tools: [workTool(() => "ok")] }).runTurn(new Session(), "go", {
    signal: counted,
  });
  await nextTick();
  expect(listeners).toBe(0);
});
