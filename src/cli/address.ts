import { files } from "./files.ts";
import { say } from "./terminal.ts";
import { readVariable } from "./variables.ts";

export type AddressOptions = { url?: string; key?: string; rpcToken?: string; webhookToken?: string; config?: string };

/** Where each part was found, for `doctor`. */
export type Origin = "option" | "environment" | "configuration" | "default" | "nowhere";
export type Address = {
  url: string;
  key: string | undefined;
  rpcToken: string | undefined;
  webhookToken: string | undefined;
  webhookPath: string | undefined;
  /** Why a token that the configuration names is not used. */
  unused: Partial<Record<"key" | "rpcToken" | "webhookToken", Error>>;
  origins: Record<"url" | "key" | "rpcToken" | "webhookToken", Origin>;
};

type Env = Record<string, string | undefined>;

/** The gateway that is meant: by options, else by the environment, else by the configuration in this folder. */
export const findAddress = async (options: AddressOptions, env: Env): Promise<Address> => {
  const variable = (name: string) => readVariable(env, name, say);
  const given = {
    url: choose(options.url, variable("GATEWAY_URL")),
    key: choose(options.key, variable("REST_API_KEY")),
    rpcToken: choose(options.rpcToken, variable("RPC_TOKEN")),
    webhookToken: choose(options.webhookToken, variable("WEBHOOK_TOKEN")),
  };
  // Who names an address names its tokens, by options, variables or a configuration.
  const file =
    options.config ?? (given.url ? undefined : env.GATEWAY_CONFIG || (files.existsSync(USUAL) ? USUAL : undefined));
  const written =
    file === undefined
      ? undefined
      : await (await import("./configured.ts")).readConfigured(file, env, given.url?.value);
  const pick = (name: keyof typeof given) =>
    given[name] ??
    (written?.[name] === undefined ? undefined : { value: written[name], origin: "configuration" as const });
  const url = pick("url") ?? { value: "http://127.0.0.1:18789", origin: "default" as const };
  const [key, rpcToken, webhookToken] = [pick("key"), pick("rpcToken"), pick("webhookToken")];
  return {
    url: url.value,
    key: key?.value,
    rpcToken: rpcToken?.value,
    webhookToken: webhookToken?.value,
    webhookPath: written?.webhookPath,
    unused: written?.unused ?? {},
    origins: {
      url: url.origin,
      key: key?.origin ?? "nowhere",
      rpcToken: rpcToken?.origin ?? "nowhere",
      webhookToken: webhookToken?.origin ?? "nowhere",
    },
  };
};

const USUAL = "gateway.json5";
const choose = (option: string | undefined, variable: string | undefined) =>
  option
    ? { value: option, origin: "option" as const }
    : variable
      ? { value: variable, origin: "environment" as const }
      : undefined;
