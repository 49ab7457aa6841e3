import { randomBytes } from "node:crypto";
import type { ConfigFile } from "#generated/config-types.ts";
import type { TryOut } from "./config.ts";

/** The variables that stand in for a try-out's secrets, by the key that each would have in a file. */
const VARIABLES = {
  "gateway.rest.auth.keys[0].key": "REST_API_KEY",
  "gateway.rpc.auth.tokens[0].token": "RPC_TOKEN",
  "gateway.console.token": "CONSOLE_TOKEN",
  "webhooks.token": "WEBHOOK_TOKEN",
} as const;

/** The configuration of a gateway that is given none: one echo agent in memory, and secrets that are new each time. */
export function tryOutConfig(env: NodeJS.ProcessEnv): {
  value: ConfigFile;
  tryOut: TryOut;
  names: Readonly<Record<string, string>>;
  /** The variables that are set, by the paths of their values. */
  from: Readonly<Record<string, string>>;
} {
  const secret = (name: string): string => env[name]?.trim() || randomBytes(24).toString("base64url");
  const tryOut: TryOut = {
    restKey: secret("REST_API_KEY"),
    rpcToken: secret("RPC_TOKEN"),
    webhookToken: secret("WEBHOOK_TOKEN"),
    consoleToken: secret("CONSOLE_TOKEN"),
  };
  const name = "try-out";
  const value: ConfigFile = {
    gateway: {
      rest: { auth: { keys: [{ name, key: tryOut.restKey }] } },
      rpc: { auth: { tokens: [{ name, token: tryOut.rpcToken, permissions: "*" }] } },
      console: { token: tryOut.consoleToken },
    },
    webhooks: { token: tryOut.webhookToken },
    agents: { main: { backend: "echo", description: "Repeats what it is told." } },
  };
  const set = Object.entries(VARIABLES).filter(([, variable]) => env[variable]?.trim());
  const from = Object.fromEntries(set.map(([key, variable]) => [key.replace("[0]", ".0"), variable]));
  return { value, tryOut, names: VARIABLES, from };
}
