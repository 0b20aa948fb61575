/** The store gave no answer, after every try that its time allowed. Whether a write was applied is unknown. */
export class StoreUnavailableError extends Error {
  override readonly name: string = "StoreUnavailableError";
}

/** The store refused requests for their number, and went on doing so. */
export class StoreThrottledError extends StoreUnavailableError {
  override readonly name = "StoreThrottledError";
}

/** The session doesn't fit its item. Nothing was written. */
export class SessionTooLargeError extends Error {
  override readonly name = "SessionTooLargeError";

  constructor(options?: ErrorOptions) {
    super("the session would outgrow the 400 KB that its item can hold", options);
  }
}

/** What is stored of a session can't be read. It is left as it is. */
export class DamagedSessionError extends Error {
  override readonly name = "DamagedSessionError";
}
