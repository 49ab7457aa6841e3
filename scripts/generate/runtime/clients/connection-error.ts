/** No answer came that could be understood: the network failed, or something other than the gateway answered. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** What was thrown, as it is if the caller gave up, else as a failed connection. */
export const connectionError = (cause: unknown, what: string, signal?: AbortSignal): unknown =>
  signal?.aborted || cause instanceof ConnectionError
    ? cause
    : new ConnectionError(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
