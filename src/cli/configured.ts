import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { parseEnv } from "node:util";
import { readSource } from "#config/files.ts";
import { ConfigError } from "#config/problems.ts";
import { resolveReferences } from "#config/references.ts";
import { readRegularFileSync } from "#kit/regular-file.ts";
import type { Credential } from "./credentials.ts";
import { CliError, NOT_ALLOWED, UsageError } from "./failures.ts";
import { isOfThisMachine } from "./this-machine.ts";
import { fileFault } from "./values.ts";

type Env = Record<string, string | undefined>;

/** The configuration that is meant, whether it is there or not. */
export function configFile(option: string | undefined, env: Env): string {
  return option ?? (env.GATEWAY_CONFIG || "gateway.json5");
}

/** The variables of `gateway.env` next to a configuration. Variables that are set override them. */
export function withEnvFile(file: string, env: Env): Env {
  const secrets = envFileOf(file);
  return existsSync(secrets) ? { ...readEnv(secrets), ...env } : env;
}

/** A file of variables is never larger. */
const MAX_ENV = 2 ** 20;

function readEnv(file: string): Env {
  try {
    return parseEnv(readRegularFileSync(file, MAX_ENV).toString());
  } catch (error) {
    const message = `the file cannot be read: ${fileFault(error)}.`;
    throw new ConfigError([{ file, line: null, column: null, key: "", message }]);
  }
}

function envFileOf(file: string): string {
  return join(dirname(file), "gateway.env");
}

/** The only variables of the environment that a command fills into a configuration. */
const OWN_VARIABLES = ["GATEWAY_HOST", "GATEWAY_PORT", "REST_API_KEY", "RPC_TOKEN", "WEBHOOK_TOKEN", "CONSOLE_TOKEN"];

type TokenName = "key" | "rpcToken" | "webhookToken";
const TOKENS: Record<TokenName, { noun: string; option: string }> = {
  key: { noun: "key", option: "--key" },
  rpcToken: { noun: "RPC token", option: "--rpc-token" },
  webhookToken: { noun: "webhook token", option: "--webhook-token" },
};

/** An address that overrides that of the configuration, and whether the configuration was named with it. */
type GivenUrl = { url: string; isFileNamed: boolean };

type Configured = {
  /** An address of this machine. */
  url: string;
  /** The keys of REST, the tokens of RPC, and the console's, each the weakest first. */
  keys: Credential[];
  rpcTokens: Credential[];
  console: Credential[];
  webhookToken: string | undefined;
  webhookPath: string | undefined;
  /** The reason for not using a token that the configuration names. */
  unused: Partial<Record<TokenName, CliError>>;
};

/**
 * The address and the tokens of a configuration's gateway. The folder may be a stranger's: tokens are returned only for an address of this
 * machine, and only the gateway's own variables and those of `gateway.env` are filled in. Throws if the configuration names another address.
 * The configuration is not validated.
 */
export async function readConfigured(file: string | undefined, env: Env, given?: GivenUrl): Promise<Configured> {
  const name = file ?? "gateway.json5";
  const { value } = file === undefined ? { value: {} } : await readSource(file);
  const variables = variablesFor(name, env);
  const { gateway, webhooks } = parts(value);
  const { console, rest, rpc } = parts(gateway);
  const urls = urlsOf(name, parts(gateway), variables);
  const elsewhere = given && isElsewhere(given, urls) ? given.url : undefined;

  const unused: Configured["unused"] = {};
  const tokenOf = (kind: TokenName, written: unknown): string[] => {
    if (typeof written !== "string") return [];
    const { noun, option } = TOKENS[kind];
    const { text, unknown } = filled(written, variables);
    const refuse = (why: string, next: string): string[] => {
      unused[kind] ??= new CliError(why, NOT_ALLOWED, next);
      return [];
    };
    if (elsewhere !== undefined)
      return refuse(
        `The ${noun} in ${name} is not used: it is for ${urls[0]}, and the address is ${elsewhere}.`,
        `pass the ${noun} of that gateway: ${option}`,
      );
    if (unknown !== undefined)
      return refuse(
        `${name} takes its ${noun} from the variable ${unknown}. ${RULE}`,
        `put ${unknown} into ${envFileOf(name)}, or pass ${option}`,
      );
    if (text.startsWith("sha256:"))
      return refuse(`${name} has only the hash of its ${noun}.`, `pass the ${noun} itself: ${option}`);
    return [text];
  };
  const credentialsOf = (
    kind: TokenName,
    written: unknown,
    may: readonly string[],
    noun = TOKENS[kind].noun,
  ): Credential[] =>
    tokenOf(kind, written).map((token) => ({ token, name: `the ${noun} in ${name}`, origin: "configuration", may }));

  const { token: webhookTokens, path } = parts(webhooks);
  const [webhookToken] = [webhookTokens].flat();
  const { token: consoleToken } = parts(console);
  const weakestFirst = (a: Credential, b: Credential) => strengthOf(a) - strengthOf(b);
  return {
    url: urls[0] as string,
    keys: list(parts(parts(rest).auth).keys)
      .filter(({ expiresAt }) => !(Date.parse(written(expiresAt)) <= Date.now()))
      .flatMap(({ key, scopes }) => credentialsOf("key", key, ["chat", ...texts(scopes)]))
      .sort(weakestFirst),
    rpcTokens: list(parts(parts(rpc).auth).tokens)
      .flatMap(({ token, permissions }) => credentialsOf("rpcToken", token, texts(permissions)))
      .sort(weakestFirst),
    console: credentialsOf("key", consoleToken, ["*"], "console token"),
    webhookToken: tokenOf(
      "webhookToken",
      typeof webhookToken === "string" ? webhookToken : parts(webhookToken).value,
    )[0],
    webhookPath:
      typeof path === "string" && /^(\/[\w.~-]+)+$/.test(path) && (elsewhere === undefined || given?.isFileNamed)
        ? path
        : undefined,
    unused,
  };
}

function strengthOf({ may }: Credential): number {
  return may.includes("*") ? Number.POSITIVE_INFINITY : new Set(may).size;
}

/**
 * Whether an address differs from that of the configuration. For a named configuration, only another machine differs; otherwise also another
 * port or interface of this one.
 */
function isElsewhere({ url, isFileNamed }: GivenUrl, urls: readonly string[]): boolean {
  if (!URL.canParse(url) || !isOfThisMachine(hostOf(url))) return true;
  return !isFileNamed && !urls.some((own) => placeOf(own) === placeOf(url));
}

function placeOf(url: string): string {
  const host = hostOf(url);
  return `${["localhost", "::1"].includes(host) ? "127.0.0.1" : host} ${new URL(url).port || url.split(":")[0]}`;
}

/** The host of a url, without the brackets of IPv6. */
function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}

const RULE =
  "A command takes only the gateway's own variables from the environment, and those in gateway.env next to the file.";

/** The addresses of the listeners, as a caller on this machine writes them. The variables win over the first, as they do for `serve`. */
function urlsOf(file: string, gateway: Parts, variables: Env): string[] {
  const listeners = list(gateway.listeners);
  const { host, port } = gateway;
  return (listeners.length > 0 ? listeners : [{ host, port }]).map((listener, index) =>
    urlOf(file, listener, variables, index === 0),
  );
}

function urlOf(file: string, listener: Parts, variables: Env, isFirst: boolean): string {
  const { host = "127.0.0.1", port = 18789, tls } = listener;
  const settingOf = (key: string, value: unknown, variable: string, isGood: (text: string) => boolean): string => {
    const named = isFirst ? variables[variable]?.trim() : undefined;
    const shown = named || written(value);
    const { text, unknown } = named ? { text: named, unknown: undefined } : filled(shown, variables);
    if (unknown !== undefined)
      throw new UsageError(`${file} takes the gateway's ${key} from the variable ${unknown}. ${RULE}`, NAME_IT);
    if (isGood(text)) return text;
    const what = key === "port" ? "a port" : "an address of this machine: nothing is sent there";
    throw new UsageError(
      `${named ? variable : file} names the ${key} ${JSON.stringify(shown)}, which is not ${what}.`,
      NAME_IT,
    );
  };
  const name = settingOf("host", host, "GATEWAY_HOST", (text) => text === "" || isOfThisMachine(text));
  const number = settingOf("port", port, "GATEWAY_PORT", (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535);
  const called = ["0.0.0.0", "::", ""].includes(name) ? "127.0.0.1" : name.includes(":") ? `[${name}]` : name;
  return `http${tls ? "s" : ""}://${called}:${number}`;
}

const NAME_IT = "name the gateway and its key: --url URL --key KEY";

/** A text with its variables filled in, and the name of one that has no value here. */
function filled(text: string, variables: Env): { text: string; unknown: string | undefined } {
  const { value, faults } = resolveReferences(text, variables);
  if (faults.length === 0) return { text: value as string, unknown: undefined };
  const names = [...text.matchAll(/\$\{([^}]*)/g)].map(([, name = ""]) => name);
  return { text, unknown: names.find((name) => !variables[name]?.trim()) ?? text };
}

/** The gateway's own variables, over those of `gateway.env`. A link out of the folder or a pipe, which a stranger could make, is not read. */
function variablesFor(file: string, env: Env): Env {
  const secrets = envFileOf(file);
  const own = Object.fromEntries(OWN_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
  if (
    !existsSync(secrets) ||
    !statSync(secrets).isFile() ||
    !realpathSync(secrets).startsWith(join(realpathSync(dirname(file)), sep))
  )
    return own;
  return { ...readEnv(secrets), ...own };
}

/** A value that is not validated, as a text. An object may have a `toString` that is not a function. */
function written(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

type Parts = { [name: string]: unknown };
/** The parts of a value that is not validated. */
function parts(value: unknown): Parts {
  return typeof value === "object" && value !== null ? (value as Parts) : {};
}
function list(value: unknown): Parts[] {
  return Array.isArray(value) ? value.map(parts) : [];
}
function texts(value: unknown): string[] {
  return [value].flat().filter((one) => typeof one === "string");
}

type ConfiguredMappings = {
  names: readonly string[];
  /** The secret that the sender of a mapping signs with. Throws if it may not be used. */
  secretOf: (name: string) => string | undefined;
  /** The address that the sender of a mapping signs. */
  urlOf: (name: string) => string | undefined;
};

/** The webhook mappings of the configuration, for requests to `url`. Undefined if there is no configuration, or `url` is on another machine. */
export async function readMappings(
  option: string | undefined,
  env: Env,
  url: string,
): Promise<ConfiguredMappings | undefined> {
  const file = configFile(option, env);
  if (!existsSync(file) || !isOfThisMachine(hostOf(url))) return undefined;
  const { value } = await readSource(file);
  const mappings = parts(parts(parts(value).webhooks).mappings);
  const verifyOf = (name: string, key: "secret" | "url"): string | undefined => {
    const [written] = [parts(parts(mappings[name]).verify)[key]].flat();
    if (typeof written !== "string") return undefined;
    const { text, unknown } = filled(written, variablesFor(file, env));
    if (unknown === undefined) return text;
    throw new UsageError(
      `${file} takes the ${key} of ${name} from the variable ${unknown}. ${RULE}`,
      `put ${unknown} into ${envFileOf(file)}, or pass ${key === "url" ? "--signed-url URL" : `--secret-env ${unknown}`}`,
    );
  };
  return {
    names: Object.keys(mappings),
    secretOf: (name) => verifyOf(name, "secret"),
    urlOf: (name) => verifyOf(name, "url"),
  };
}
