/** One fault in a value from outside. `path` is written as in JavaScript: `messages[3].content`; "" is the value itself. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** A value from outside that can't be taken. Nothing was done with it; `faults` says what to mend, and where. */
export class InvalidInputError extends Error {
  override readonly name: string = "InvalidInputError";
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[], options?: ErrorOptions) {
    super(
      faults.map(({ path, message }) => (path ? `${path}: ${message}` : message)).join("; "),
      options,
    );
    this.faults = faults;
  }
}

/** A snapshot that can't be restored. */
export class InvalidSnapshotError extends InvalidInputError {
  override readonly name = "InvalidSnapshotError";
}

export const invalid = (path: string, message: string): InvalidInputError =>
  new InvalidInputError([{ path, message }]);

/** `metadata` and `a key` become `metadata["a key"]`; identifiers are joined with a dot. */
export const childPath = (path: string, key: string | number): string => {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path ? `${path}.${key}` : key;
};
