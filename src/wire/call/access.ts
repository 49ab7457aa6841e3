import type { IncomingMessage } from "node:http";
import type { Caller } from "#core/call.ts";
import { createSecretIndex } from "#kit/secrets.ts";
import type { KeyLimits } from "#store/store.ts";
import { createHooksAccess, type HooksAccess, type HooksAccessSettings } from "#wire/hooks/hooks-access.ts";
import { createNetworks, createPeerOf, type Peer } from "./address.ts";

type RestCaller = Extract<Caller, { surface: "rest" }>;
type RpcCaller = Extract<Caller, { surface: "rpc" }>;

type AccessSettings = {
  trustedProxies: readonly string[];
  clearTextFrom: readonly string[];
  /** sha256 of the console's token, hex. */
  consoleToken: string | undefined;
  rpcTokens: readonly ({ name: string; hash: string; permissions: readonly string[] } & KeyLimits)[];
  webhooks: HooksAccessSettings;
};

export type Access = {
  peerOf: (req: IncomingMessage) => Peer;
  isProxy: (address: string) => boolean;
  identifyConsole: (hash: Buffer) => RestCaller | undefined;
  identifyRpc: (hash: Buffer) => RpcCaller | undefined;
  hooks: HooksAccess;
};

const CONSOLE = "console";

/** The callers that one configuration lets in. A reload makes another and puts it in this one's place. */
export function createAccess(settings: AccessSettings): Access {
  const console = settings.consoleToken === undefined ? [] : [Buffer.from(settings.consoleToken, "hex")];
  const own = { tokenId: CONSOLE, name: CONSOLE };
  // All callers of a surface have the same fields, for speed.
  const unlimited = { agents: undefined, rateLimit: undefined, budget: undefined };
  const restCaller: RestCaller = { surface: "rest", ...own, scopes: ["console"], ...unlimited };
  const rpcCaller: RpcCaller = { surface: "rpc", ...own, permissions: ["*"], ...unlimited };
  return {
    peerOf: createPeerOf(settings),
    isProxy: createNetworks(settings.trustedProxies),
    identifyConsole: createSecretIndex(console.map((hash) => ({ hash, value: restCaller }))),
    identifyRpc: createSecretIndex<RpcCaller>([
      ...settings.rpcTokens.map(({ name, hash, permissions, agents, rateLimit, budget }) => {
        const limits = { agents, rateLimit, budget };
        const value = { surface: "rpc", tokenId: `config:${name}`, name, permissions, ...limits } as const;
        return { hash: Buffer.from(hash, "hex"), value };
      }),
      ...console.map((hash) => ({ hash, value: rpcCaller })),
    ]),
    hooks: createHooksAccess(settings.webhooks),
  };
}
