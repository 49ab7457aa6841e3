/** The source of a part of the address, for `doctor`. */
export type Origin = "option" | "environment" | "configuration" | "default" | "nowhere";

/** A token with its name for the user and its rights: scopes of REST or permissions of RPC, or `*` for all. */
export type Credential = { token: string; name: string; origin: Origin; may: readonly string[] };

/** The weakest credential that is sufficient; otherwise the strongest, whose refusal names the missing right. The list starts with the weakest. */
export function weakestFor(credentials: readonly Credential[], need: string): Credential | undefined {
  return credentials.find(({ may }) => may.includes(need) || may.includes("*")) ?? credentials.at(-1);
}

/** All tokens that were found for a gateway: for REST and RPC the weakest first. */
export type Tokens = {
  credentials: Record<"rest" | "rpc", readonly Credential[]>;
  webhookToken: string | undefined;
  webhookPath: string | undefined;
};

type Request = { method: string; path: string; body?: unknown };

/** The token for a request: the webhook token below the webhooks' path, else the weakest that may send it. */
export async function tokenFor(tokens: Tokens, { method, path, body }: Request): Promise<string | undefined> {
  const { credentials, webhookToken, webhookPath = "/hooks" } = tokens;
  if (path === webhookPath || path.startsWith(`${webhookPath}/`)) return webhookToken;
  if (path === "/metrics") return weakestFor(credentials.rpc, "system.health")?.token;
  if (path.startsWith("/rpc")) return weakestFor(credentials.rpc, permissionOf(body))?.token;
  const { routes } = await import("#generated/routes.ts");
  const route = routes.find((route) => route.method === method && patternOf(route.path).test(path));
  return weakestFor(credentials.rest, route?.scope ?? "chat")?.token;
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`);
}

/** The permission for a method is its name. A request that is not a single call needs a token that may do everything. */
function permissionOf(body: unknown): string {
  try {
    const { method } = JSON.parse(String(body)) as { method?: unknown };
    return typeof method === "string" ? method : "*";
  } catch {
    return "*";
  }
}

/** A `fetch` for the client that sends each call with the weakest token that may make it. `refused` is called if the gateway does not accept it. */
export function fetchFor(address: Tokens & { url: string }, refused: (credential: Credential) => void) {
  return async (url: string, init: RequestInit): Promise<Response> => {
    const headers = new Headers(init.headers);
    const base = new URL(address.url).pathname.replace(/\/+$/, "");
    const path = new URL(url).pathname.slice(base.length);
    const token = headers.has("authorization")
      ? await tokenFor(address, { method: init.method ?? "GET", path, body: init.body })
      : undefined;
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    const response = await fetch(url, { ...init, headers });
    const { rest, rpc } = address.credentials;
    const sent = [...rest, ...rpc].find((credential) => credential.token === token);
    if (response.status === 401 && sent) refused(sent);
    return response;
  };
}
