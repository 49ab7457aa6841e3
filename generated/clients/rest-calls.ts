// Copied by "npm run generate" from scripts/generate/runtime/clients/rest-calls.ts; do not edit.
import { ConnectionError, connectionError } from "./connection-error.ts";

export interface Place {
  method: string;
  path: string;
  readAs: "json" | "text" | "events";
  needsBody?: boolean;
}

interface Parts {
  path?: object;
  query?: object;
  headers?: object;
  body?: unknown;
}

/** The part of an openapi-fetch client that is used. Its types need paths that are known when it is compiled; these come from a table. */
interface AnyClient {
  request(method: string, path: string, init: object): Promise<{ data?: unknown; response: Response }>;
}

/** An operation of a gateway. */
export interface Called {
  operation: string;
  baseUrl: string;
  /** Where it is; undefined for a name that no operation has. */
  place: Place | undefined;
}

/** Calls an operation by its place, and gives its body, read as its contract says; for events, the response itself. */
export async function callOperation(
  client: unknown,
  { operation, baseUrl, place }: Called,
  parts: Parts,
  signal?: AbortSignal,
) {
  if (place === undefined) throw new TypeError(`There is no operation ${operation}. RestOperations lists them.`);
  const { method, path, readAs, needsBody } = place;
  if (needsBody && parts.body === undefined)
    throw new TypeError(`${operation} needs a body. Pass it as \`body\`: call("${operation}", { body: { … } }).`);
  const { data, response } = await send().catch((error: unknown) => {
    // `fetch` says with a TypeError that there was no connection; all else is what it is.
    throw error instanceof TypeError
      ? connectionError(error, `${operation}: no answer from ${baseUrl}`, signal)
      : error;
  });
  if (readAs !== "events") return data;
  if (response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  throw new ConnectionError(`HTTP ${response.status} instead of a stream of events`);

  function send() {
    return (client as AnyClient).request(method, path, {
      params: { path: parts.path, query: parts.query, header: parts.headers },
      parseAs: readAs === "events" ? "stream" : readAs,
      ...(parts.body === undefined ? {} : { body: parts.body }),
      ...(signal === undefined ? {} : { signal }),
    });
  }
}
