import { BackendError } from "#kit/errors.ts";
import { METADATA, METADATA_WORDS } from "#outbound/lookup.ts";

const CONNECTING: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: "no connection to it in time",
  ETIMEDOUT: "no connection to it in time",
  ECONNREFUSED: "nothing listens at its address",
  ENOTFOUND: "its host name is not known",
  EAI_AGAIN: "its host name could not be looked up",
  EHOSTUNREACH: "its host cannot be reached",
  ENETUNREACH: "its network cannot be reached",
};
const HEAD = "the head of its answer is too long";
/** The errors that another try would not change. */
const LASTING: Record<string, string> = {
  [METADATA]: METADATA_WORDS,
  UND_ERR_HEADERS_OVERFLOW: HEAD,
  HPE_HEADER_OVERFLOW: HEAD,
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "its answer is too long",
  UND_ERR_INVALID_ARG: "the request cannot be sent: check its `url` and `headers`",
};

/**
 * The failure for a broken connection. It uses the error's code, because the message may hold the address, which may be a secret.
 */
export function connectionError(who: string, error: unknown): BackendError {
  if (error instanceof BackendError) return error;
  const code = codeOf(error);
  const connecting = CONNECTING[code];
  if (connecting !== undefined) return new BackendError(`${who} cannot be reached: ${connecting}`, again(error));
  const lasting = LASTING[code];
  if (lasting !== undefined) return new BackendError(`${who} cannot be used: ${lasting}`, { cause: error });
  if (code.startsWith("HPE_") || (error instanceof Error && error.name === "HTTPParserError"))
    return new BackendError(`${who} cannot be used: its answer is not HTTP`, { cause: error });
  if (/CERT|^ERR_TLS|^ERR_SSL|^DEPTH_ZERO|^UNABLE_TO_/.test(code))
    return new BackendError(`${who} cannot be used: its certificate or its TLS was not accepted`, { cause: error });
  return new BackendError(`${who} closed the connection early`, again(error));
}

function again(cause: unknown) {
  return { retryable: true, cause };
}

function codeOf(error: unknown): string {
  for (let one = error, depth = 0; one instanceof Error && depth < 4; one = one.cause, depth++) {
    const { code } = one as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return "";
}

/** True for statuses after which another try may succeed. */
export function isWorthAnotherTry(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501 && status !== 505);
}

/** The meaning of a status for the sender of the turn, in place of the remote's own words. */
export function statusWords(status: number): string {
  if (status >= 300 && status < 400) return `answered ${status}, and redirects are not followed`;
  const known = STATUSES[status];
  return known === undefined ? `answered ${status}` : `answered ${status}: ${known}`;
}

const STATUSES: Record<number, string> = {
  401: "it refuses the gateway's credentials",
  403: "it does not permit this request",
  404: "nothing exists at its address",
  413: "the turn is too long for it",
  429: "it limits the gateway's requests",
  503: "it is not available",
  529: "it is overloaded",
};
