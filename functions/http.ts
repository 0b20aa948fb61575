import { agent } from "./agent.ts";
import { composeHttp } from "./compose.ts";

export const handler = composeHttp(agent);
