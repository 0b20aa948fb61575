/** What only HTTP can get wrong. */

export class UnauthorizedError extends Error {
  override readonly name = "UnauthorizedError";

  constructor() {
    super("the request names no caller: sign it with IAM, or have an authorizer set owner");
  }
}

export class RouteNotFoundError extends Error {
  override readonly name = "RouteNotFoundError";

  constructor(method: string, path: string) {
    super(`there is no route ${method} ${path}`);
  }
}

export class MethodNotAllowedError extends Error {
  override readonly name = "MethodNotAllowedError";
  readonly allowed: readonly string[];

  constructor(allowed: readonly string[]) {
    super(`this route takes ${allowed.join(", ")}`);
    this.allowed = allowed;
  }
}

export class UnsupportedMediaTypeError extends Error {
  override readonly name = "UnsupportedMediaTypeError";

  constructor() {
    super("the body must be JSON in UTF-8, sent with content-type: application/json");
  }
}

export class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";

  constructor(bytes: number, maxBytes: number) {
    super(`the body is ${bytes} bytes; at most ${maxBytes} are taken`);
  }
}

export class AnswerTooLargeError extends Error {
  override readonly name = "AnswerTooLargeError";

  constructor() {
    super(
      "the session is too large for one answer: read it page by page, at …/messages or …/turns",
    );
  }
}
