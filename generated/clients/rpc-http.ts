// Copied by "npm run generate" from scripts/generate/runtime/clients/rpc-http.ts; do not edit.
import { ConnectionError, connectionError } from "./connection-error.ts";
import { isResponse, type RpcTransport } from "./rpc-transport.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Calls over HTTP: one POST for each message. */
export function httpTransport({ url, token, fetch }: { url: string; token: string; fetch: Fetch }): RpcTransport {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", accept: "application/json" };
  return {
    async send(message, signal) {
      try {
        const init = { method: "POST", headers, body: JSON.stringify(message) };
        const response = await fetch(url, signal === undefined ? init : { ...init, signal });
        if (response.status === 204) return [];
        return readResponses(await response.text(), response.status);
      } catch (error) {
        const called = Array.isArray(message) ? "a batch" : message.method;
        throw connectionError(error, `${called}: no answer from ${url}`, signal);
      }
    },
  };
}

function readResponses(text: string, status: number) {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const responses = Array.isArray(body) ? body : [body];
  if (!responses.every(isResponse)) throw new ConnectionError(`HTTP ${status} without a JSON-RPC response`);
  return responses;
}
