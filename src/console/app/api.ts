import { Gateway, GatewayError } from "#generated/clients/typescript/src/index.ts";
import type { RpcClient } from "#generated/clients/typescript/src/rpc.ts";
import { type Identity, identity, RPC_REASON, signOut } from "./session.ts";

const ORIGIN = location.origin;

/** Told of each call that a token was refused for, so that the sign-in page comes back. */
function refused(token: string, response: Response): void {
  if (response.status === 401 && identity.peek()?.token === token)
    signOut("The token does not work any more. Sign in again; you will be back on this page.");
}

function fetchWith(token: string) {
  return async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, init);
    refused(token, response);
    return response;
  };
}

/** Asks if a token still works, which a stream that does not open cannot tell. */
export async function checkToken(token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = fetchWith(token)(`${ORIGIN}/api/v1/keys?limit=1`, { headers, cache: "no-store" });
  await answer.then((response) => response.text()).catch(() => {});
}

let client: { token: string; gateway: Gateway } | undefined;

/** The gateway as whoever is signed in calls it. A page says at once that a call failed, and tries again in its own time. */
export function rest(): Gateway {
  const token = identity.peek()?.token;
  if (token === undefined) throw new Error("Nobody is signed in.");
  if (client?.token === token) return client.gateway;
  const fetch = fetchWith(token);
  const gateway = new Gateway({ url: ORIGIN, key: token, rpcToken: token, maxRetries: 0, fetch });
  client = { token, gateway };
  return gateway;
}

/** The gateway's RPC methods. A REST key has none. */
export function rpc(): RpcClient {
  if (identity.peek()?.kind !== "console") throw new NotAllowed(RPC_REASON);
  return rest().rpc;
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

/**
 * Finds out what a token is. Answers why it cannot be used, in words, where it cannot. The flight recorder keeps every refusal, so a token
 * that is known to be a REST key is not asked for what only the console token may do.
 */
export async function identify(token: string, knownKind?: string): Promise<Identity | { refused: string }> {
  // No header carries anything else: the call would fail as if the gateway were away.
  if (!/^[!-~]+$/.test(token))
    return { refused: "This is not a token: it is empty, or holds a space or a character that no header can carry." };
  const ask = async (path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${ORIGIN}/api/v1${path}`, { headers, cache: "no-store" });
    // A request whose answer is not read stays open.
    if (response.ok) await response.text();
    return response;
  };
  const keys = knownKind === "admin" ? undefined : await ask("/keys?limit=1");
  if (keys?.ok) return { kind: "console", token };
  if (keys === undefined || keys.status === 403) {
    const admin = await ask("/deliveries?limit=1");
    if (admin.ok) return { kind: "admin", token };
    if (admin.status === 403)
      return {
        refused: "This key has the scope `chat`. The console needs the console token, or a key of scope `admin`.",
      };
    return { refused: await wordsOf(admin) };
  }
  return { refused: await wordsOf(keys) };
}

/** Signs in with the code of a link. Returns the reason if that fails. */
export async function redeem(code: string): Promise<Identity | { refused: string }> {
  const response = /^[\w-]{1,100}$/.test(code)
    ? await fetch(`${ORIGIN}/api/v1/console/codes/redeem`, {
        method: "POST",
        headers: { authorization: `Bearer ${code}` },
        cache: "no-store",
      })
    : undefined;
  if (response?.ok) return (await response.json()) as Identity;
  if (response !== undefined && response.status !== 401) return { refused: await wordsOf(response) };
  const wait = response?.headers.get("retry-after");
  return {
    refused: wait
      ? `${CODE_REFUSED} Too many wrong codes were sent from this address: wait ${wait} seconds.`
      : CODE_REFUSED,
  };
}

const CODE_REFUSED =
  "The link no longer works: its code was used or is older than a minute, its key is not valid any more, or the gateway has restarted or is another one behind this address. Run `agent-gateway open` for a new link, or enter the token here.";

async function wordsOf(response: Response): Promise<string> {
  const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string };
  const wait = response.headers.get("retry-after");
  if (response.status === 401 && wait)
    return `The gateway does not know this token. Too many wrong tokens were sent from this address: wait ${wait} seconds before you try another. The right one works at once.`;
  if (response.status === 401) return "The gateway does not know this token.";
  return problem.detail ?? problem.title ?? `The gateway answered ${response.status}.`;
}

/** An error in the reader's words: what happened, and what the gateway's log has it under. */
export type Trouble = { title: string; detail?: string | undefined; requestId?: string | undefined; name: string };

export function troubleOf(error: unknown): Trouble {
  if (error instanceof GatewayError && error.requestId !== undefined) {
    const { name, title, detail, requestId } = error;
    return { name, title, detail, requestId };
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
    title: "Something went wrong in this page",
    detail: String((error as Error)?.message ?? error),
  };
}
