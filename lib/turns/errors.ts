/** Why a turn wasn't run, or a session not touched. In each case the history is as it was. */

/** There is no such session: never created, expired, deleted, or another owner's. The caller can't tell which. */
export class SessionNotFoundError extends Error {
  override readonly name = "SessionNotFoundError";

  constructor(sessionId: string, message = `there is no session ${sessionId}`) {
    super(message);
  }
}

export class SessionExistsError extends Error {
  override readonly name = "SessionExistsError";

  constructor(sessionId: string) {
    super(`there is a session ${sessionId} already`);
  }
}

/** Another turn has the session. Its model was not called for this one: try again. */
export class SessionBusyError extends Error {
  override readonly name: string = "SessionBusyError";
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number, message = "another turn of this session is running") {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/**
 * This very turn is open: another try of it is running, or this one lost its lease while it ran, and
 * nobody else has the session yet. The same turn id gets its result, or goes on with it.
 */
export class TurnInProgressError extends SessionBusyError {
  override readonly name = "TurnInProgressError";

  constructor(retryAfterSeconds: number) {
    super(retryAfterSeconds, "this turn is under way: ask again with the same turn id");
  }
}

/**
 * The turn lost the session before it was done: it was cancelled, or another turn took its place. It
 * is not in the history.
 */
export class TurnSupersededError extends Error {
  override readonly name = "TurnSupersededError";

  constructor(how = "it lost the session while it ran; nothing of it is in the history") {
    super(`the turn wasn't done: ${how}`);
  }
}

/** The outcome of a turn that is recorded as abandoned. */
export const givenUp = (): TurnSupersededError =>
  new TurnSupersededError(
    "it was given up, for another turn or by its caller; its tools may have run",
  );

/** The session has no such turn: neither in its history, nor running. */
export class TurnNotFoundError extends Error {
  override readonly name = "TurnNotFoundError";

  constructor(turnId: string) {
    super(`there is no turn ${turnId} in this session`);
  }
}

/** The turn id was used before, with another input. */
export class TurnIdReusedError extends Error {
  override readonly name = "TurnIdReusedError";

  constructor(turnId: string) {
    super(`turn ${turnId} was run with another input`);
  }
}

/** The session isn't at the version that the caller asked for. */
export class VersionMismatchError extends Error {
  override readonly name = "VersionMismatchError";
  /** The present one; undefined where there is no session. */
  readonly version: number | undefined;

  constructor(now: { readonly version: number; readonly metadataVersion: number } | undefined) {
    super(
      now
        ? `the session is at version ${now.version}.${now.metadataVersion}`
        : "there is no such session yet",
    );
    this.version = now?.version;
  }
}

/** The turn wasn't done in time. It was stopped, and the session is free: try again. */
export class TurnTimeoutError extends Error {
  override readonly name = "TurnTimeoutError";
  readonly retryAfterSeconds = 1;

  constructor() {
    super("the turn wasn't done in time and was stopped");
  }
}

export class MetadataTooLargeError extends Error {
  override readonly name = "MetadataTooLargeError";

  constructor(bytes: number, maxBytes: number) {
    super(`the metadata are ${bytes} bytes of JSON; at most ${maxBytes} are taken`);
  }
}
