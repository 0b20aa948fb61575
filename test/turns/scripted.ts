/** Turns whose model follows a script, and the history that they leave. */
import { Agent } from "../../lib/agent/agent.ts";
import type { Model } from "../../lib/agent/model.ts";
import type { Message } from "../../lib/session/message.ts";
import type { SessionKey } from "../../lib/store/head.ts";
import type { SessionStore } from "../../lib/store/store.ts";
import { createSessions } from "../../lib/turns/sessions.ts";
import { createTurns, type TurnsOptions } from "../../lib/turns/turns.ts";
import { settableClock } from "../support/clock.ts";
import { NOW_MS } from "../support/heads.ts";
import { type ScriptedReply, scriptedModel } from "../support/models.ts";

/** On the store that a suite opens before its tests. */
export const scriptedTurns = (store: () => SessionStore) => {
  const start = (model: Model, options: Partial<TurnsOptions> = {}) => {
    const clock = settableClock(NOW_MS);
    const agent = options.agent ?? new Agent({ model, system: "Be kind." });
    return {
      ...createTurns({ store: store(), clock, ...options, agent }),
      sessions: createSessions({ store: store(), clock }),
      clock,
    };
  };
  const script = (...replies: ScriptedReply[]) => {
    const model = scriptedModel(replies);
    return { model, ...start(model) };
  };
  const historyOf = async (key: SessionKey): Promise<readonly Message[]> => {
    const it = await store().read(key);
    return it ? (await createSessions({ store: store() }).export(it)).messages : [];
  };
  const turnsOf = async (key: SessionKey) => {
    const it = await store().read(key);
    return it ? store().turns(it, { from: 1, to: it.version }) : [];
  };
  return { start, script, historyOf, turnsOf };
};
