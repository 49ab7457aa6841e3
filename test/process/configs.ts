import type { ConfigFile } from "#generated/config-types.ts";

export const key = "rest-key-of-the-process-tests";
export const opsToken = "rpc-token-of-the-process-tests";

type Echo = NonNullable<NonNullable<ConfigFile["agents"]>[string]["echo"]>;

/** A configuration with one echo agent with the given options, one REST key and one RPC token. */
export function agentWith(echo: Echo): ConfigFile {
  return {
    gateway: {
      rest: { auth: { keys: [{ name: "ci", key }] } },
      rpc: { auth: { tokens: [{ name: "ops", token: opsToken, permissions: "*" }] } },
    },
    agents: { main: { backend: "echo", echo } },
  };
}
