import type { AgentEvent } from "../agent/events.ts";
import { invalid } from "../session/invalid.ts";
import { kindOf } from "../session/json.ts";
import { checkSessionId } from "../session/session.ts";
import type { DoneTurn } from "../session/turn.ts";
import type { IfMatch } from "../store/head.ts";
import { checkOwner, hash, isCallersTurnId, OWN_TURN_ID_MARK } from "../store/keys.ts";

export interface TurnRequest {
  readonly owner: string;
  readonly sessionId: string;
  /** The caller's name for this turn: its idempotency key. One is made where it is left out. */
  readonly turnId?: string;
  readonly input: string;
  readonly onBusy?: OnBusy;
  /** The id of an earlier turn of the session, whose place this one takes. */
  readonly supersedes?: string;
  /**
   * Runs the turn only on this version of the session. Where the turn interrupts another one it is
   * the version before that: the one that the caller saw when it decided to.
   */
  readonly ifMatch?: IfMatch;
  /** When the caller's own time is over, in epoch milliseconds. The turn stops early enough to tidy up. */
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: AgentEvent) => void;
}

/**
 * What to do while another turn has the session:
 * - "reject": the caller tries again;
 * - "wait": until it is free, or the deadline is near;
 * - "interrupt": stop that turn; what its finished steps did stays in the history. One that has none,
 *   or was to supersede an earlier one, is dropped;
 * - "rollback": stop that turn, and drop it. If it had steps, it can't be run again.
 */
export type OnBusy = (typeof ON_BUSY)[number];

const ON_BUSY = ["reject", "wait", "interrupt", "rollback"] as const;

/** An input of more bytes than `maxInputBytes`. */
export class InputTooLargeError extends Error {
  override readonly name = "InputTooLargeError";

  constructor(bytes: number, maxBytes: number) {
    super(`the input is ${bytes} bytes; at most ${maxBytes} are taken`);
  }
}

/** @throws {InvalidInputError} with the path of the fault; {InputTooLargeError} */
export const checkTurnRequest = (request: TurnRequest, maxInputBytes: number): TurnRequest => {
  checkOwner(request.owner, "owner");
  checkSessionId(request.sessionId, "sessionId");
  if (request.turnId !== undefined) checkTurnId(request.turnId, "turnId");
  if (request.supersedes !== undefined) checkTurnName(request.supersedes, "supersedes");
  checkOnBusy(request.onBusy ?? "reject", "onBusy");
  if (Number.isNaN(Number(request.deadlineMs ?? 0)))
    throw invalid("deadlineMs", "must be a number");
  const input = checkInput(request.input, "input");
  const bytes = Buffer.byteLength(input);
  if (bytes > maxInputBytes) throw new InputTooLargeError(bytes, maxInputBytes);
  return { ...request, input };
};

/**
 * 1 to 128 visible ASCII characters. Those that begin with `~` are made by `newTurnId` and never
 * taken from outside: they are not kept for recognition once their turn is old.
 *
 * @throws {InvalidInputError}
 */
export const checkTurnId = (value: unknown, path: string): string => {
  if (typeof value !== "string" || !/^[\x21-\x7e]{1,128}$/.test(value)) {
    throw invalid(path, "must be 1 to 128 visible ASCII characters");
  }
  if (!isCallersTurnId(value))
    throw invalid(path, "must not begin with ~: such ids are the server's own");
  return value;
};

export const newTurnId = (randomId: string): string => `${OWN_TURN_ID_MARK}${randomId}`;

export const checkTurnName = (value: unknown, path: string): string => {
  if (typeof value !== "string" || value === "") throw invalid(path, "must be the id of a turn");
  return value;
};

export const checkOnBusy = (value: unknown, path: string): OnBusy => {
  const known = ON_BUSY.find((it) => it === value);
  if (!known) throw invalid(path, `must be one of ${ON_BUSY.join(", ")}`);
  return known;
};

/** Text made well-formed. A blank one is refused here, since model providers refuse it. */
export const checkInput = (value: unknown, path: string): string => {
  if (typeof value !== "string") throw invalid(path, `must be a string, not ${kindOf(value)}`);
  if (value.trim() === "") throw invalid(path, "must not be blank");
  return value.toWellFormed();
};

/** Over everything that the caller gives and that changes the turn: the same id with another hash is another turn. */
export const requestHash = ({
  input,
  supersedes,
}: Pick<TurnRequest, "input" | "supersedes">): string =>
  hash(JSON.stringify([input, supersedes ?? null]));

/** @throws {InvalidInputError} unless `turnId` names a turn of the history that still has its place */
export const checkReplaceable = (turnId: string, turns: readonly DoneTurn[]): void => {
  if (!turns.some((turn) => turn.turnId === turnId)) {
    throw invalid("supersedes", `there is no turn ${turnId} in this session`);
  }
  const successor = turns.find((turn) => turn.supersedes === turnId);
  if (successor)
    throw invalid("supersedes", `turn ${turnId} was superseded by ${successor.turnId} already`);
};
