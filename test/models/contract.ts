/** What every model keeps, whatever stands behind it. */
import { describe, expect, test } from "vitest";
import type { Model, ModelReply, ToolSpec } from "../../lib/agent/model.ts";
import { checkMessage, type Message, userMessage } from "../../lib/session/message.ts";

export interface ModelScene {
  readonly model: Model;
  /** What it is asked, to which it has an answer in text of more than one piece. */
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSpec[];
}

export const signalOf = (): AbortSignal => new AbortController().signal;

export const modelContract = (name: string, open: () => Promise<ModelScene>): void => {
  describe(`${name} as a model`, () => {
    const ask = async (
      { model, messages, tools = [] }: ModelScene,
      options: Partial<Parameters<Model["complete"]>[2]> = {},
    ): Promise<ModelReply> => model.complete(messages, tools, { signal: signalOf(), ...options });

    test("answers with a sound assistant message", async () => {
      const { message } = await ask(await open());
      expect(checkMessage(structuredClone(message))).toStrictEqual(structuredClone(message));
      expect(message.role).toBe("assistant");
    });

    test("tells its text in pieces that make it up, and the same without a listener", async () => {
      const scene = await open();
      const pieces: string[] = [];
      const { message } = await ask(scene, { onText: (delta) => pieces.push(delta) });
      expect(pieces.length).toBeGreaterThan(1);
      expect(pieces.join("")).toBe(message.content);
      expect((await ask(await open())).message.content).toBe(message.content);
    });

    test("changes nothing of what it is given, and keeps nothing between calls", async () => {
      const scene = await open();
      const before = structuredClone(scene.messages);
      await ask(scene);
      expect(scene.messages).toStrictEqual(before);
    });

    test("rejects with the signal's reason where it is aborted before", async () => {
      const reason = new Error("enough");
      await expect(ask(await open(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    });

    test("rejects with the signal's reason where it is aborted between two pieces", async () => {
      const controller = new AbortController();
      const reason = new Error("enough");
      const asked = ask(await open(), {
        signal: controller.signal,
        onText: () => controller.abort(reason),
      });
      await expect(asked).rejects.toBe(reason);
    });
  });
};

export const ASKED: readonly Message[] = [userMessage("What is 2 + 3?")];
