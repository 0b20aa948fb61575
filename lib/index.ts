/** The public face. Model adapters have paths of their own: `oneturn/models/demo`. */
export {
  Agent,
  type AgentOptions,
  ModelFailedError,
  type RunOptions,
  type RunResult,
} from "./agent/agent.ts";
export type { AgentEvent } from "./agent/events.ts";
export type { Journal } from "./agent/journal.ts";
export type { Model, ModelCallOptions, ModelReply, ToolSpec, Usage } from "./agent/model.ts";
export type { Step } from "./agent/steps.ts";
export { type Summarize, type SummaryRequest, summaryBy } from "./agent/summary.ts";
export {
  type Effect,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  tool,
} from "./agent/tool.ts";
export type { Window } from "./agent/view.ts";
export { type HttpHandler, type HttpHandlerOptions, httpHandler } from "./http/handler.ts";
export { type Fault, InvalidInputError, InvalidSnapshotError } from "./session/invalid.ts";
export type { JsonObject, JsonValue } from "./session/json.ts";
export {
  assistantMessage,
  type Message,
  systemMessage,
  type ToolCall,
  toolMessage,
  userMessage,
} from "./session/message.ts";
export { Session, type SessionFields, type Snapshot } from "./session/session.ts";
export type { DoneTurn, Finish, OpenTurn, Turn, TurnStep } from "./session/turn.ts";
export { dynamoClient } from "./store/dynamodb/client.ts";
export { type DynamoSessionStoreOptions, dynamoSessionStore } from "./store/dynamodb/store.ts";
export {
  dynamoSweeper,
  type Sweeper,
  type SweeperOptions,
  type SweepReport,
  type SweepRequest,
} from "./store/dynamodb/sweep.ts";
export * from "./store/errors.ts";
export type { SessionKey } from "./store/head.ts";
export { memorySessionStore } from "./store/memory/store.ts";
export type { SessionStore } from "./store/store.ts";
export type { NamedTurn } from "./turns/cancel.ts";
export * from "./turns/errors.ts";
export type { FailedTurn, FinishedTurn, FoundTurn, UnfinishedTurn } from "./turns/find.ts";
export type { Page, PagedMessage, PageRequest, TurnJson } from "./turns/pages.ts";
export { InputTooLargeError, type OnBusy, type TurnRequest } from "./turns/request.ts";
export type { TurnResult } from "./turns/result.ts";
export { createSessions, type Sessions, type SessionsOptions } from "./turns/sessions.ts";
export { createTurns, type Turns, type TurnsOptions } from "./turns/turns.ts";
