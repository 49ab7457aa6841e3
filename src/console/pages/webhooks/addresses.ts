import { rest } from "#console/app/api.ts";
import { type HookRequest, secretVariable, withPair, withPlaces } from "#console/lib/webhook-requests.ts";
import type { MappingList } from "#generated/clients/typescript/src/rest.ts";
import type { SignatureScheme } from "#generated/clients/typescript/src/webhooks.ts";

/** One address for webhooks. `shared` is the path of all mappings without a signature. */
export type HookAddress = {
  kind: "wake" | "agent" | "shared" | "mapping";
  /** As the page's own address names it. */
  key: string;
  name: string;
  path: string;
  verify: SignatureScheme | null;
  does: string;
  /** The configured mapping. */
  rule?: Rule;
};
export type Rule = MappingList["mappings"][number];

type HookAddresses = Pick<MappingList, "mappings" | "tokens"> & {
  addresses: HookAddress[];
  /** The address of the console serves webhooks, too. */
  isServedHere: boolean;
};

/** The address of this gateway for webhooks. */
export async function readAddresses(signal: AbortSignal): Promise<HookAddresses> {
  const [{ mappings, tokens }, { paths }] = await Promise.all([
    rest().mappings.list({ signal }),
    rest().ops.index({ signal }),
  ]);
  const served = paths.find(({ description }) => description.startsWith("Webhooks"))?.path;
  const [first] = mappings;
  const base = first ? first.path.slice(0, -first.name.length - 1) : (served ?? "/hooks");
  const addresses: HookAddress[] = [
    addressOf("wake", "wake", "Wake", `${base}/wake`, "Queues a system event for an agent's next heartbeat"),
    addressOf("agent", "agent", "Agent", `${base}/agent`, "Starts a turn with the message"),
    addressOf("shared", "*", "Any mapping", base, "Starts the first mapping that matches"),
    ...mappings.map((rule) => ({
      ...addressOf("mapping", rule.name, rule.name, rule.path, conditionsOf(rule).join(", and ") || "Any payload"),
      verify: rule.verify,
      rule,
    })),
  ];
  return { addresses, mappings, tokens, isServedHere: served !== undefined };
}

function addressOf(kind: HookAddress["kind"], key: string, name: string, path: string, does: string): HookAddress {
  return { kind, key, name, path, does, verify: null };
}

/** The newest recorded webhooks, for the last request and the failures of each address. */
export async function readRecent(signal: AbortSignal) {
  return (await rest().deliveries.list({ surface: "hooks", limit: 100 }, { signal })).deliveries;
}

export type Requests = Awaited<ReturnType<typeof readRecent>>;

/** The requests to an address, newest first: to its path, or matched by its mapping. */
export function requestsOf({ path, kind, name }: HookAddress, recent: Requests): Requests {
  return recent.filter((one) => one.path === path || (kind === "mapping" && one.mapping === name));
}

/** The conditions under which a mapping matches, in words. */
function conditionsOf({ match }: Pick<Rule, "match">): string[] {
  return Object.entries(match).map(([place, values]) => `${place} is ${values.join(" or ")}`);
}

export const SIGNED_AS: Readonly<Record<SignatureScheme, string>> = {
  github: "GitHub",
  stripe: "Stripe",
  slack: "Slack",
  linear: "Linear",
  twilio: "Twilio",
  "standard-webhooks": "Standard Webhooks",
};

export function secretWords({ verify }: HookAddress): string {
  return verify === null ? "Shared token" : `${SIGNED_AS[verify]} signature`;
}

export function variableOf({ verify }: HookAddress): string {
  return `$${secretVariable(verify)}`;
}

const EXAMPLES = {
  wake: { text: "The nightly build is green.", metadata: { source: "ci" } },
  agent: { message: "Summarise the incident" },
} as const;
/** A mapping asks for fewer pairs than this, or its example stays incomplete. */
const MOST_PAIRS = 12;

/** A request that the address accepts: for a mapping, one that matches every pair of its `match`, found by a dry run. */
export async function exampleFor({ kind, name, rule }: HookAddress, signal?: AbortSignal): Promise<HookRequest> {
  let request: HookRequest = { headers: {}, body: {} };
  if (kind === "wake" || kind === "agent") return { ...request, body: EXAMPLES[kind] };
  for (let n = 0; n < MOST_PAIRS; n++) {
    const asked = { headers: { ...request.headers }, body: request.body as Record<string, unknown> };
    const body = { ...asked, ...(kind === "mapping" && { name }) };
    const { mappings } = await rest().mappings.dryRun(body, { ...(signal && { signal }) });
    // The shared path is only for mappings without a signature.
    const failed = mappings.find(({ verify }) => kind === "mapping" || verify === null)?.failed;
    if (!failed || failed.path === "message") break;
    request = withPair(request, failed.path, failed.expected[0] ?? "");
  }
  if (!rule) return request;
  const { message, session, coalesce, to, thread } = rule;
  return [message, session, coalesce?.key, to, thread].reduce((filled, one) => withPlaces(filled, one ?? ""), request);
}
