/** The model that `MODEL` names. An adapter is loaded only where it is the one: no other cold start pays for it. */
import type { Model } from "../lib/agent/model.ts";
import { demoModel } from "../lib/models/demo.ts";
import { config } from "./config.ts";

export const configuredModel = async (): Promise<Model> => {
  const { model } = config;
  switch (model.kind) {
    case "demo":
      return demoModel();
    case "bedrock": {
      const { bedrockModel } = await import("../lib/models/bedrock.ts");
      return bedrockModel({ modelId: model.modelId });
    }
    case "openai-compatible": {
      const { openaiCompatibleModel } = await import("../lib/models/openai-compatible.ts");
      const { baseUrl, modelId, apiKey } = model;
      return openaiCompatibleModel({ baseUrl, modelId, ...(apiKey ? { apiKey } : {}) });
    }
  }
};
