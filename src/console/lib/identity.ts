/** The signed-in token, and what it may do. */
export type Identity = {
  kind: "console" | "key" | "rpc";
  name: string;
  /** Of an RPC token; `*` stands for all. */
  permissions: readonly string[];
  /** The only agents that it may use; null for all. */
  agents: readonly string[] | null;
  token: string;
};

/** The right that a control needs: REST, the management of keys, or an RPC permission. `gateway.stream` requires `system.health`, and `*.*` requires all permissions. */
export type Right = "rest" | "keys" | `${string}.${string}`;

/** The rights that concern all agents. */
const OF_ALL_AGENTS: readonly Right[] = ["gateway.stream", "agent.reload", "system.reload", "*.*"];

const KEY_REASON = "API keys can't use this. Sign in with the console token.";
const RPC_TOKEN_REASON = "RPC tokens can't use this. Sign in with the console token or an admin API key.";
const AGENTS_REASON = "Tokens that are limited to some agents can't use this.";
const KEYS_REASON = "Only the console token can create and revoke keys.";

/** Why an identity may not do something; undefined if it may. */
export function whyNot(who: Identity | undefined, right: Right): string | undefined {
  if (!who || who.kind === "console") return undefined;
  if (right === "keys") return KEYS_REASON;
  if (who.kind === "key") return right === "rest" ? undefined : KEY_REASON;
  if (right === "rest") return RPC_TOKEN_REASON;
  if (who.agents && OF_ALL_AGENTS.includes(right)) return AGENTS_REASON;
  const needed = right === "gateway.stream" ? "system.health" : right;
  return who.permissions.some((one) => one === "*" || one === needed) ? undefined : `Needs the permission ${needed}.`;
}

/** An identity in words. */
export function nameOf({ kind, name }: Pick<Identity, "kind" | "name">): string {
  return kind === "console" ? "the console token" : `the ${kind === "key" ? "API key" : "RPC token"} ${name}`;
}

/** The permissions of which each opens a page. */
const USEFUL = ["agent.list", "session.list", "usage.stats"] as const;

/** Why a valid token cannot sign in to the console; undefined if it can. */
export function whyNoConsole(who: Identity, scopes: readonly string[]): string | undefined {
  if (who.kind === "key" && !scopes.includes("admin"))
    return `The API key \`${who.name}\` has the scope \`chat\`. The console needs the console token, an API key of scope \`admin\`, or an RPC token.`;
  if (who.kind === "rpc" && USEFUL.every((one) => whyNot(who, one) !== undefined))
    return `The RPC token \`${who.name}\` has no permission for the console. It needs one of ${USEFUL.map((one) => `\`${one}\``).join(", ")}.`;
  return undefined;
}

const EXPIRED = /^The key `([\s\S]*)` expired at (\d{4}-\d\d-\d\dT[\d:.]+Z)\./;
const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

/** Why the gateway refused a token, by its answer. */
export function refusalOf(
  status: number,
  { type = "", detail, title }: { type?: string; detail?: string; title?: string },
  retryAfter: string | null,
): string {
  if (status !== 401) return detail ?? title ?? `The gateway answered ${status}.`;
  const [, name, at] = (type.endsWith("#key-expired") && EXPIRED.exec(detail ?? "")) || [];
  if (at) return `The key \`${name}\` expired on ${DAY.format(new Date(at))}. Sign in with another key or token.`;
  if (!retryAfter) return "Unknown token.";
  return `Unknown token. Too many invalid tokens from this address: wait ${retryAfter} s. A valid token is accepted immediately.`;
}
