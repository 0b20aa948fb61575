import { describe, expect, test } from "vitest";
import { ProviderError } from "../../../lib/models/errors.ts";
import type { BedrockAnswer } from "../wire-bedrock.ts";
import { event, replyEvents } from "./bodies.ts";
import { type Frame, frame } from "./frames.ts";
import { bedrockScene, FIVE } from "./scene.ts";

const { ask, server } = bedrockScene();

const WHOLE = replyEvents({
  reasoning: { text: "hm", signature: "s" },
  text: "I add",
  calls: [{ id: "c1", name: "add", arguments: '{"a":2,"b":3}' }],
});

/** How often it was asked, what was told, what came of it. */
const outcomeOf = async (answers: readonly BedrockAnswer[]) => {
  const before = server().sent.length;
  let told = "";
  let restarts = 0;
  const asked = ask({
    answers,
    onText: (delta) => {
      told += delta;
    },
    onRestart: () => {
      restarts++;
      told = "";
    },
  });
  const [outcome] = await Promise.allSettled([asked]);
  return {
    message: outcome.status === "fulfilled" ? outcome.value.message : undefined,
    error: outcome.status === "rejected" ? (outcome.reason as unknown) : undefined,
    tries: server().sent.length - before,
    told,
    restarts,
  };
};

describe("a stream", () => {
  const said: Frame[] = [
    event("messageStart", { role: "assistant" }),
    event("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "fi" } }),
  ];
  const message = "try later";
  const exceptions: readonly (readonly [string, boolean, object])[] = [
    ["internalServerException", true, {}],
    ["modelStreamErrorException", true, {}],
    ["modelStreamErrorException", true, { originalStatusCode: 500, originalMessage: "down" }],
    ["modelStreamErrorException", false, { originalStatusCode: 400, originalMessage: "no" }],
    ["serviceUnavailableException", true, {}],
    ["throttlingException", true, {}],
    ["validationException", false, {}],
    ["AccessDeniedException", false, {}],
    ["somethingNewException", true, {}],
  ];
  test.each(exceptions)("with %s in it is transient: %s %j", async (type, isTransient, more) => {
    const payload = { message, ...more };
    const exception: Frame = { kind: "exception", type, payload };
    for (const frames of [[exception], [...said, exception]]) {
      const broken: BedrockAnswer = { kind: "frames", frames, behind: "silence" };
      const once = await outcomeOf([broken, FIVE]);
      expect(once.tries).toBe(isTransient ? 2 : 1);
      expect(once.restarts).toBe(isTransient && frames.length > 1 ? 1 : 0);
      expect(once.message?.content).toBe(isTransient ? "five" : undefined);
      const { error } = await outcomeOf([broken, broken, broken, broken]);
      expect(error).toBeInstanceOf(ProviderError);
      expect(error).toMatchObject({
        isTransient,
        status: undefined,
        requestId: expect.any(String),
      });
      expect(String(error)).toMatch(/Exception: .*try later/i);
    }
  });

  test("with an error of another kind in it is tried again", async () => {
    const error: Frame = { kind: "error", type: "InternalFailure", payload: "out of order" };
    const { message: got, tries } = await outcomeOf([{ kind: "frames", frames: [error] }, FIVE]);
    expect([got?.content, tries]).toEqual(["five", 2]);
  });

  test("that ends before its end mark, after whichever event, is no answer", async () => {
    for (let count = 0; count <= WHOLE.told.length; count++) {
      const frames = WHOLE.told.slice(0, count);
      const { message: got, tries } = await outcomeOf([{ kind: "frames", frames }, FIVE]);
      expect([got?.content, tries, count]).toEqual(["five", 2, count]);
    }
  });

  test("that ends in the middle of an event is no answer", async () => {
    const last = frame(WHOLE.last);
    for (const length of [1, 4, 11, 20, last.length - 1]) {
      const behind = last.subarray(0, length);
      const cut: BedrockAnswer = { kind: "frames", frames: WHOLE.told, behind };
      const { message: got, tries } = await outcomeOf([cut, FIVE]);
      expect([got?.content, tries]).toEqual(["five", 2]);
    }
  });

  test("with an event whose checksum is wrong is no answer", async () => {
    const last = frame(WHOLE.last);
    last.writeUInt8(last.readUInt8(60) ^ 1, 60);
    const damaged: BedrockAnswer = { kind: "frames", frames: WHOLE.told, behind: last };
    const { message: got, tries } = await outcomeOf([damaged, FIVE]);
    expect([got?.content, tries]).toEqual(["five", 2]);
  });

  test("whose end mark comes within a block is no answer", async () => {
    const open = { kind: "frames", frames: [...said, WHOLE.last] } as const;
    const start = { toolUse: { toolUseId: "c", name: "add" } };
    const call = [event("contentBlockStart", { contentBlockIndex: 0, start }), WHOLE.last];
    const { message: got, tries } = await outcomeOf([open, { kind: "frames", frames: call }, FIVE]);
    expect([got?.content, tries]).toEqual(["five", 3]);
  });

  test("with events that nobody knows is an answer", async () => {
    const frames = [
      ...WHOLE.told,
      event("somethingNew", { x: 1 }),
      event("contentBlockDelta", { contentBlockIndex: 9, delta: { somethingNew: {} } }),
      event("contentBlockStop", { contentBlockIndex: 9 }),
      WHOLE.last,
    ];
    const { message: got } = await outcomeOf([{ kind: "frames", frames }]);
    expect(got).toMatchObject({ content: "I add", toolCalls: [{ id: "c1" }] });
  });

  test("tells no half of a character", async () => {
    const pieces = ["a\ud83d", "\ude00b", "\ud83d"];
    const told: string[] = [];
    const { message: got } = await ask({
      answers: [
        {
          kind: "frames",
          frames: [
            ...pieces.map((text) =>
              event("contentBlockDelta", { contentBlockIndex: 0, delta: { text } }),
            ),
            event("contentBlockStop", { contentBlockIndex: 0 }),
            WHOLE.last,
          ],
        },
      ],
      onText: (delta) => told.push(delta),
    });
    expect(told.every((delta) => delta.isWellFormed())).toBe(true);
    expect([told.join(""), got.content]).toEqual(["a😀b\ufffd", "a😀b\ufffd"]);
  });

  test("that falls silent is let go when the signal aborts", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const asked = ask({
      answers: [{ kind: "frames", frames: said, behind: "silence" }],
      signal: controller.signal,
      onText: () => setTimeout(() => controller.abort(reason), 10),
    });
    await expect(asked).rejects.toBe(reason);
    await expect.poll(() => server().requests.at(-1)?.isAborted()).toBe(true);
  });

  test.each([
    ["an exception", [{ kind: "exception", type: "validationException", payload: { message } }]],
    [
      "an exception behind text",
      [...said, { kind: "exception", type: "validationException", payload: { message } }],
    ],
  ] as readonly [string, Frame[]][])("is let go after %s", async (_what, frames) => {
    await outcomeOf([{ kind: "frames", frames, behind: "silence" }]);
    await expect.poll(() => server().requests.at(-1)?.isAborted()).toBe(true);
  });

  test("whose listener throws is let go, and the call rejects with just that", async () => {
    const bug = new Error("a bug");
    const onText = () => {
      throw bug;
    };
    const silent: BedrockAnswer = { kind: "frames", frames: said, behind: "silence" };
    await expect(ask({ answers: [silent], onText })).rejects.toBe(bug);
    await expect.poll(() => server().requests.at(-1)?.isAborted()).toBe(true);
  });
});
