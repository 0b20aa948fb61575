/** What a provider answered in place of a reply. */

export interface ProviderErrorFields {
  /** As in `Model.provider`. */
  readonly provider: string;
  /** Of the HTTP answer; undefined where none came whole. */
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  /** Whether the same request may get a reply later: throttled, overloaded, or not answered. */
  readonly isTransient: boolean;
  /** From `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}

/** A call of a provider that brought no whole reply. It says who, what status and which request, and holds no key. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly provider: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly isTransient: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(what: string, fields: ProviderErrorFields, options?: ErrorOptions) {
    const { provider, status, requestId, isTransient, retryAfterMs } = fields;
    const answer = status === undefined ? "" : ` answered ${status}`;
    const request = requestId === undefined ? "" : ` (request ${requestId})`;
    super(`${provider}${answer}${request}: ${what}`, options);
    this.provider = provider;
    this.status = status;
    this.requestId = requestId;
    this.isTransient = isTransient;
    this.retryAfterMs = retryAfterMs;
  }
}

/** 408, 409 and 425 ask for another try too; of the rest below 500 none gets better by itself. */
export const isTransientStatus = (status: number): boolean =>
  status >= 500 || [408, 409, 425, 429].includes(status);

/** Milliseconds of a `Retry-After`, which counts seconds or names a date. */
export const retryAfterMs = (
  header: string | null | undefined,
  nowMs: number,
): number | undefined => {
  if (!header) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
};

/** What an error may hold: it comes from anywhere. */
export const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
