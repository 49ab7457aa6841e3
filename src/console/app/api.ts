import { Gateway, GatewayError } from "#generated/clients/typescript/src/index.ts";
import type { RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import { type Identity, type Right, refusalOf, whyNoConsole } from "../lib/identity.ts";
import { type Given, identity, lastSignOut, signOut, whyNot } from "./session.ts";

const ORIGIN = location.origin;

/** Called for each response. Signs out if the token was refused. */
function refused(token: string, response: Response): void {
  if (response.status === 401 && identity.peek()?.token === token)
    signOut("The token is no longer valid. Sign in again to return to this page.");
}

function fetchWith(token: string) {
  return async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    refused(token, response);
    return response;
  };
}

/** Checks whether a token is still valid, because a WebSocket that fails to open does not report the reason. */
export async function checkToken(token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = fetchWith(token)(`${ORIGIN}/api/v1/identity`, { headers, cache: "no-store" });
  await answer.then((response) => response.text()).catch(() => {});
}

let client: { token: string; gateway: Gateway } | undefined;

function gateway(): Gateway {
  const token = identity.peek()?.token;
  if (token === undefined) throw new Error("Not signed in.");
  if (client?.token === token) return client.gateway;
  const fetch = fetchWith(token);
  const gateway = new Gateway({ url: ORIGIN, key: token, rpcToken: token, maxRetries: 0, fetch });
  client = { token, gateway };
  return gateway;
}

/** REST with the signed-in identity. A page shows a failed call at once, and retries at its own pace. */
export function rest(): Gateway {
  return whyNot("rest") === undefined ? gateway() : guarded(gateway(), () => "rest");
}

/** The gateway's RPC methods. */
export function rpc(): RpcClient {
  const { rpc } = gateway();
  return identity.peek()?.kind === "console" ? rpc : guarded(rpc, (method) => method as Right);
}

/** The same calls. One that the identity may not make fails without a request: the flight recorder stores every refusal. */
function guarded<Part extends object>(part: Part, rightOf: (call: string) => Right, group = ""): Part {
  return new Proxy(part, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name);
      if (typeof name === "symbol") return found;
      if (typeof found === "object" && found !== null) return guarded(found, rightOf, `${group}${name}.`);
      const why = typeof found === "function" ? whyNot(rightOf(group + name)) : undefined;
      return why === undefined ? found : () => Promise.reject(new NotAllowed(why));
    },
  });
}

/** The reason why the signed-in key may not do something, known without asking. */
class NotAllowed extends Error {
  override name = "NotAllowed";
}

/** The gateway answers again, whoever is signed in. */
export function isReachable(): Promise<boolean> {
  return fetch(`${ORIGIN}/console`, { method: "HEAD", cache: "no-store" }).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** A call as it goes over the wire, for the page that shows raw exchanges. */
export function rawFetch(path: string, init: RequestInit & { headers?: Record<string, string> }): Promise<Response> {
  return fetch(ORIGIN + path, init);
}

/** Returns the identity of a token, or in words why it cannot sign in. `since` is the last sign-out before the token was read. */
export async function identify(token: string, since = lastSignOut()): Promise<Given | { refused: string }> {
  // No header carries anything else: the call would fail as if the gateway were away.
  if (!/^[!-~]+$/.test(token))
    return {
      refused: "Invalid token: it is empty, or contains a space or a character that is not allowed in a header.",
    };
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${ORIGIN}/api/v1/identity`, { headers, cache: "no-store" });
  if (!response.ok) return { refused: await wordsOf(response) };
  const { kind, name, permissions, agents, scopes } = (await response.json()) as Identity & { scopes: string[] };
  const found = { kind, name, permissions, agents, token, since };
  const refused = whyNoConsole(found, scopes);
  return refused === undefined ? found : { refused };
}

/** Signs in with the code of a link. Returns the reason if that fails. */
export async function redeem(code: string): Promise<Given | { refused: string }> {
  const since = lastSignOut();
  const response = /^[\w-]{1,100}$/.test(code)
    ? await fetch(`${ORIGIN}/api/v1/console/codes/redeem`, {
        method: "POST",
        headers: { authorization: `Bearer ${code}` },
        cache: "no-store",
      })
    : undefined;
  if (response?.ok) return await identify(((await response.json()) as Identity).token, since);
  if (response !== undefined && response.status !== 401) return { refused: await wordsOf(response) };
  const wait = response?.headers.get("retry-after");
  return {
    refused: wait ? `${CODE_REFUSED} Too many invalid codes from this address: wait ${wait} s.` : CODE_REFUSED,
  };
}

const CODE_REFUSED =
  "This link no longer works. Its code was used, is older than a minute, or belongs to a revoked key or to another gateway process. Run `agent-gateway open` for a new link, or enter the token here.";

async function wordsOf(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as Parameters<typeof refusalOf>[1];
  return refusalOf(response.status, problem, response.headers.get("retry-after"));
}

/** An error in the reader's words: what happened, and what the gateway's log has it under. */
export type Trouble = {
  title: string;
  detail?: string | undefined;
  requestId?: string | undefined;
  name: string;
  /** When the same call may succeed. */
  retryAfterMs?: number | undefined;
};

export function troubleOf(error: unknown): Trouble {
  if (error instanceof GatewayError && error.requestId !== undefined) {
    const { name, title, detail, requestId, retryAfterMs } = error;
    return { name, title, detail, requestId, retryAfterMs };
  }
  if (error instanceof NotAllowed) return { name: "not-allowed", title: error.message };
  if (error instanceof GatewayError || (error instanceof Error && /fetch|connection/i.test(error.message)))
    return {
      name: "unreachable",
      title: "The gateway cannot be reached",
      detail: "It may be restarting.",
    };
  return {
    name: "unknown",
    title: "Something went wrong on this page",
    detail: String((error as Error)?.message ?? error),
  };
}
