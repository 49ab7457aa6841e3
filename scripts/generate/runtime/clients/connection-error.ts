/** No answer came that could be understood: the network failed, or something other than the gateway answered. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** The error to throw: the given one if the caller gave up, else a failed connection. */
export const connectionError = (cause: unknown, what: string, signal?: AbortSignal): unknown =>
  signal?.aborted || cause instanceof ConnectionError
    ? cause
    : new ConnectionError(`${what}: ${reasonOf(cause)}`, { cause });

/** `fetch` says no more than that it failed; its cause says why. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message || String((error as { code?: unknown }).code ?? error.name);
};
