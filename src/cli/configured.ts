import { existsSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { parseEnv } from "node:util";
import { readSource } from "#config/files.ts";
import { resolveReferences } from "#config/references.ts";
import { UsageError } from "./failures.ts";
import { isOfThisMachine } from "./this-machine.ts";

type Env = Record<string, string | undefined>;

/** The configuration that is meant, whether it is there or not. */
export const configFile = (option: string | undefined, env: Env): string =>
  option ?? (env.GATEWAY_CONFIG || "gateway.json5");

/** The variables of `gateway.env` next to a configuration, under those that are set. */
export const withEnvFile = (file: string, env: Env): Env => {
  const secrets = envFileOf(file);
  return existsSync(secrets) ? { ...parseEnv(readFileSync(secrets, "utf8")), ...env } : env;
};

const envFileOf = (file: string): string => join(dirname(file), "gateway.env");

/** The only variables of the environment that a command fills into a configuration. */
const OWN_VARIABLES = ["GATEWAY_HOST", "GATEWAY_PORT", "REST_API_KEY", "RPC_TOKEN", "WEBHOOK_TOKEN", "CONSOLE_TOKEN"];

type TokenName = "key" | "rpcToken" | "webhookToken";
const TOKENS: Record<TokenName, { noun: string; option: string }> = {
  key: { noun: "key", option: "--key" },
  rpcToken: { noun: "RPC token", option: "--rpc-token" },
  webhookToken: { noun: "webhook token", option: "--webhook-token" },
};

type Configured = {
  /** An address of this machine, or the one that was given. */
  url: string;
  key: string | undefined;
  rpcToken: string | undefined;
  webhookToken: string | undefined;
  webhookPath: string | undefined;
  /** Why a token that the configuration names is not used. */
  unused: Partial<Record<TokenName, UsageError>>;
};

/**
 * Where the gateway of a configuration listens, and the tokens that it takes. The folder may be a stranger's: tokens are given only for an
 * address of this machine, and no variable is filled in but the gateway's own and those of `gateway.env`. Throws a sentence if the
 * configuration names another address. `given` is an address that wins over that of the configuration. The configuration is not validated.
 */
export const readConfigured = async (file: string, env: Env, given?: string): Promise<Configured> => {
  const { value } = await readSource(file);
  const variables = variablesFor(file, env);
  const { gateway, webhooks } = parts(value);
  const { console, rest, rpc } = parts(gateway);
  const url = given ?? urlOf(file, parts(gateway), variables);
  const isElsewhere = given !== undefined && !isOfThisMachine(hostOf(given));
  const unused: Configured["unused"] = {};
  const tokenOf = (name: TokenName, written: unknown): string | undefined => {
    if (typeof written !== "string") return undefined;
    const { noun, option } = TOKENS[name];
    const { text, unknown } = filled(written, variables);
    if (isElsewhere)
      unused[name] = new UsageError(
        `The ${noun} of ${file} is for a gateway on this machine. It is not sent to ${given}.`,
        `pass the ${noun} of that gateway: ${option}`,
      );
    else if (unknown !== undefined)
      unused[name] = new UsageError(
        `${file} takes its ${noun} from the variable ${unknown}. ${RULE}`,
        `put ${unknown} into ${envFileOf(file)}, or pass ${option}`,
      );
    else if (text.startsWith("sha256:"))
      unused[name] = new UsageError(`${file} has only the hash of its ${noun}.`, `pass the ${noun} itself: ${option}`);
    return unused[name] ? undefined : text;
  };
  const keys = list(parts(parts(rest).auth).keys);
  const tokens = list(parts(parts(rpc).auth).tokens);
  const strongest = tokens.find(({ permissions }) => [permissions].flat().includes("*")) ?? tokens[0];
  const { token: consoleToken } = parts(console);
  const { token: webhookTokens, path } = parts(webhooks);
  const [webhookToken] = [webhookTokens].flat();
  return {
    url,
    key: tokenOf("key", consoleToken ?? keys[0]?.key),
    rpcToken: tokenOf("rpcToken", consoleToken ?? strongest?.token),
    webhookToken: tokenOf("webhookToken", typeof webhookToken === "string" ? webhookToken : parts(webhookToken).value),
    webhookPath: typeof path === "string" && /^(\/[\w.~-]+)+$/.test(path) ? path : undefined,
    unused,
  };
};

/** The host of a url without the brackets of IPv6; empty if it is not a url. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") : "");

const RULE =
  "A command takes only the gateway's own variables from the environment, and those in gateway.env next to the file.";

/** The address of the first listener, as a caller on this machine writes it. */
const urlOf = (file: string, gateway: Parts, variables: Env): string => {
  const [listener] = Array.isArray(gateway.listeners) ? gateway.listeners.map(parts) : [];
  const { host = "127.0.0.1", port = 18789, tls } = listener ?? { ...gateway, tls: undefined };
  /** The variable wins over the file, as it does for `serve`. */
  const placeOf = (key: string, written: unknown, variable: string, isGood: (text: string) => boolean): string => {
    const [source, shown] = variables[variable] ? [variable, variables[variable]] : [file, written];
    const { text, unknown } =
      source === file ? filled(String(shown), variables) : { text: String(shown), unknown: undefined };
    if (unknown !== undefined)
      throw new UsageError(`${file} takes the gateway's ${key} from the variable ${unknown}. ${RULE}`, NAME_IT);
    if (isGood(text)) return text;
    const what = key === "port" ? "a port" : "an address of this machine: nothing is sent there";
    throw new UsageError(`${source} names the ${key} ${JSON.stringify(shown)}, which is not ${what}.`, NAME_IT);
  };
  const name = placeOf("host", host, "GATEWAY_HOST", (text) => text === "" || isOfThisMachine(text));
  const number = placeOf("port", port, "GATEWAY_PORT", (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535);
  const called = ["0.0.0.0", "::", ""].includes(name) ? "127.0.0.1" : name.includes(":") ? `[${name}]` : name;
  return `http${tls ? "s" : ""}://${called}:${number}`;
};

const NAME_IT = "name the gateway and its key: --url URL --key KEY";

/** A text with its variables filled in, and the name of one that has no value here. */
const filled = (text: string, variables: Env): { text: string; unknown: string | undefined } => {
  const { value, faults } = resolveReferences(text, variables);
  if (faults.length === 0) return { text: value as string, unknown: undefined };
  const names = [...text.matchAll(/\$\{([^}]*)/g)].map(([, name = ""]) => name);
  return { text, unknown: names.find((name) => !variables[name]?.trim()) ?? text };
};

/** The gateway's own variables, over those of `gateway.env`. A link to a file of another folder, which a stranger could make, is not read. */
const variablesFor = (file: string, env: Env): Env => {
  const secrets = envFileOf(file);
  const own = Object.fromEntries(OWN_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
  if (!existsSync(secrets) || !realpathSync(secrets).startsWith(join(realpathSync(dirname(file)), sep))) return own;
  return { ...parseEnv(readFileSync(secrets, "utf8")), ...own };
};

type Parts = { [name: string]: unknown };
/** The parts of a value that is not validated. */
const parts = (value: unknown): Parts => (typeof value === "object" && value !== null ? (value as Parts) : {});
const list = (value: unknown): Parts[] => (Array.isArray(value) ? value.map(parts) : []);
