/** The store gave no answer, after every try that its time allowed. Whether a write was applied is unknown. */
export class StoreUnavailableError extends Error {
  override readonly name: string = "StoreUnavailableError";
}

/** The store refused requests for their number, and went on doing so. */
export class StoreThrottledError extends StoreUnavailableError {
  override readonly name = "StoreThrottledError";
}

/** The store refuses what it is asked for: there is no such table, or no right to it. A mistake in the deployment. */
export class StoreRefusedError extends Error {
  override readonly name = "StoreRefusedError";
}

/** More than the store takes, or than a process can hold. Nothing was written. */
export class SessionTooLargeError extends Error {
  override readonly name = "SessionTooLargeError";
}

/** What is stored of a session can't be read. It is left as it is. */
export class DamagedSessionError extends Error {
  override readonly name = "DamagedSessionError";
}
