import { type ErrorName, errors } from "#generated/errors.ts";

export type { ErrorName };

/** The details that a caller may learn beyond the row of the error table. */
export type ErrorExtra = {
  /** Where in the request it went wrong, as JSON pointers. */
  errors?: readonly { pointer: string; message: string }[];
  turnId?: string;
  /** The turn was started by an earlier request with the same idempotency key. */
  replayed?: boolean;
  retryAfterMs?: number;
  /** The limit that was passed, for rate-limited. */
  rateLimit?: { maxRequests: number; windowMs: number };
  /** The budget without room, for budget-exceeded. */
  budget?: { name: string; resetsAt: number };
  /** Methods that the path accepts, for method-not-allowed. */
  allow?: string;
  cause?: unknown;
};

/** The one error that callers see. Its name is a row of specs/errors.yaml; each door translates it once. */
export class GatewayError extends Error {
  override readonly name: ErrorName;
  readonly detail: string | undefined;
  readonly extra: ErrorExtra;

  constructor(name: ErrorName, detail?: string, extra: ErrorExtra = {}) {
    // A stack costs more than all the rest of a refusal, and is read only for unexpected errors.
    const { stackTraceLimit } = Error;
    if (name !== "internal") Error.stackTraceLimit = 0;
    super(detail ?? errors[name].title, extra.cause === undefined ? undefined : { cause: extra.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.name = name;
    this.detail = detail;
    this.extra = extra;
  }

  /** Anything that was thrown, as an error of the table: a foreign error is `internal`, with its cause for the log. */
  static from(thrown: unknown): GatewayError {
    return thrown instanceof GatewayError ? thrown : new GatewayError("internal", undefined, { cause: thrown });
  }
}

type Failure = { retryable?: boolean; retryAfterMs?: number; isLate?: boolean; cause?: unknown };

/** A failure of a backend that knows its kind. `retryable` counts only before the first piece of text. */
export class BackendError extends Error {
  override readonly name = "BackendError";
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  /** It was waited for as long as the agent's timeouts say. */
  readonly isLate: boolean;
  /** The name of the model that failed, for the log. */
  model: string | undefined = undefined;

  constructor(message: string, { retryable = false, retryAfterMs, isLate = false, cause }: Failure = {}) {
    super(message, { cause });
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.isLate = isLate;
  }

  /** Its text is complete: the log omits its stack. */
  get isPlain(): true {
    return true;
  }
}
