import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { parseConfig } from "#config/files.ts";
import { resolveReferences } from "#config/references.ts";

type Env = Record<string, string | undefined>;

type Written = {
  gateway?: {
    host?: string;
    port?: number;
    listeners?: { host?: string; port?: number; tls?: object }[];
    rest?: { auth?: { keys?: { key?: string }[] } };
    rpc?: { auth?: { tokens?: { token?: string; permissions?: string[] }[] } };
    console?: { token?: string };
  };
  webhooks?: { token?: string | { token?: string }[]; path?: string };
};

/** The configuration that is meant, whether it is there or not. */
export const configFile = (option: string | undefined, env: Env): string =>
  option ?? (env.GATEWAY_CONFIG || "gateway.json5");

/** The variables of `gateway.env` beside a configuration, under those that are set. */
export const withEnvFile = (file: string, env: Env): Env => {
  const beside = join(dirname(file), "gateway.env");
  return existsSync(beside) ? { ...parseEnv(readFileSync(beside, "utf8")), ...env } : env;
};

/** Where the gateway of a configuration listens, and the tokens that it takes. The file is read, and not checked. */
export const readAddress = async (file: string, env: Env) => {
  const { value } = await parseConfig(file, readFileSync(file));
  const { gateway = {}, webhooks = {} } = resolveReferences(value, withEnvFile(file, env)).value as Written;
  const { host = "127.0.0.1", port = 18789, tls } = gateway.listeners?.[0] ?? { ...gateway, tls: undefined };
  const name = ["0.0.0.0", "::", ""].includes(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  const tokens = gateway.rpc?.auth?.tokens ?? [];
  const strongest = tokens.find(({ permissions }) => permissions?.includes("*")) ?? tokens[0];
  const [webhookToken] = [webhooks.token].flat();
  const resolved = (token: string | undefined) => (token?.includes("${") ? undefined : token);
  return {
    url: `http${tls ? "s" : ""}://${name}:${port}`,
    key: resolved(gateway.console?.token ?? gateway.rest?.auth?.keys?.[0]?.key),
    rpcToken: resolved(gateway.console?.token ?? strongest?.token),
    webhookToken: resolved(typeof webhookToken === "string" ? webhookToken : webhookToken?.token),
    webhookPath: webhooks.path,
  };
};
