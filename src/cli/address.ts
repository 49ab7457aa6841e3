import { type Credential, type Origin, type Tokens, weakestFor } from "./credentials.ts";
import { UsageError } from "./failures.ts";
import { files } from "./files.ts";
import { say } from "./terminal.ts";
import { readVariable } from "./variables.ts";

export type AddressOptions = { url?: string; key?: string; rpcToken?: string; webhookToken?: string; config?: string };

export type Address = Tokens & {
  url: string;
  /** The weakest key for a message. */
  key: string | undefined;
  /** The weakest token for every method. */
  rpcToken: string | undefined;
  /** The credential that the gateway did not accept. */
  refused?: Credential;
  /** The reason for not using a token that the configuration names. */
  unused: Partial<Record<"key" | "rpcToken" | "webhookToken", Error>>;
  origins: Record<"url" | "key" | "rpcToken" | "webhookToken", Origin>;
};

type Env = Record<string, string | undefined>;

/** The gateway that is meant: by options, else by the environment, else by the configuration in this folder. */
export async function findAddress(options: AddressOptions, env: Env): Promise<Address> {
  const variable = (name: string) => readVariable(env, name, say);
  const given = choose(options.url, variable("GATEWAY_URL"));
  const configured = await readFolder(options.config, env, given?.value);
  const url =
    given ??
    (configured
      ? { value: configured.url, origin: "configuration" as const }
      : { value: "http://127.0.0.1:18789", origin: "default" as const });

  const [key, rpcToken] = [
    choose(options.key, variable("REST_API_KEY"), "the key of --key", "the REST key in REST_API_KEY"),
    choose(options.rpcToken, variable("RPC_TOKEN"), "the token of --rpc-token", "the RPC token in RPC_TOKEN"),
  ];
  const consoleToken = choose(undefined, env.CONSOLE_TOKEN, "", "the console token in CONSOLE_TOKEN");
  const everything = [...credentialOf(consoleToken, ["*"]), ...(configured?.console ?? [])].slice(0, 1);
  const credentials = {
    // An option names the one key to use. The rights of a key in the environment are not known, only its usual purpose.
    rest: options.key
      ? credentialOf(key, ["*"])
      : [...credentialOf(key, ["chat"]), ...(configured?.keys ?? []), ...everything],
    rpc: rpcToken ? credentialOf(rpcToken, ["*"]) : [...(configured?.rpcTokens ?? []), ...everything],
  };
  const [rest, rpc] = [weakestFor(credentials.rest, "chat"), weakestFor(credentials.rpc, "*")];
  const hook = choose(
    options.webhookToken,
    variable("WEBHOOK_TOKEN"),
    "the token of --webhook-token",
    "the webhook token in WEBHOOK_TOKEN",
  );
  for (const { token, name } of [...credentials.rest, ...credentials.rpc, ...credentialOf(hook, [])])
    mustBeSendable(token, name);
  const webhookToken =
    hook ??
    (configured?.webhookToken ? { value: configured.webhookToken, origin: "configuration" as const } : undefined);
  return {
    url: url.value,
    key: rest?.token,
    rpcToken: rpc?.token,
    webhookToken: webhookToken?.value,
    webhookPath: configured?.webhookPath,
    credentials,
    unused: configured?.unused ?? {},
    origins: {
      url: url.origin,
      key: rest?.origin ?? "nowhere",
      rpcToken: rpc?.origin ?? "nowhere",
      webhookToken: webhookToken?.origin ?? "nowhere",
    },
  };
}

/** The address and tokens of a configuration. A file that was not named may be invalid if the address is known without it. */
async function readFolder(option: string | undefined, env: Env, url: string | undefined) {
  const named = option ?? (url === undefined ? env.GATEWAY_CONFIG || undefined : undefined);
  const file = named ?? (files.existsSync(USUAL) ? USUAL : undefined);
  if (file === undefined && !env.GATEWAY_HOST && !env.GATEWAY_PORT) return undefined;
  const { readConfigured } = await import("./configured.ts");
  const reading = readConfigured(file, env, url === undefined ? undefined : { url, isFileNamed: named !== undefined });
  return named === undefined && url !== undefined ? await reading.catch(() => undefined) : await reading;
}

/** Refuses a token before anything is sent with it. */
function mustBeSendable(token: string, name: string): void {
  if ([...token].some((char) => char < " " || char > "\xff" || char === "\x7f"))
    throw new UsageError(
      `${name.replace(/^t/, "T")} holds a character that HTTP cannot carry in a header.`,
      "check that it is the whole token, and only that",
    );
}

const USUAL = "gateway.json5";
type Choice = { value: string; name: string; origin: Origin };
/** The value of an option, else of a variable, with the name that the source gives it. */
function choose(
  option: string | undefined,
  variable: string | undefined,
  nameOfOption = "",
  nameOfVariable = "",
): Choice | undefined {
  if (option) return { value: option, name: nameOfOption, origin: "option" };
  return variable ? { value: variable, name: nameOfVariable, origin: "environment" } : undefined;
}
function credentialOf(choice: Choice | undefined, may: readonly string[]): Credential[] {
  return choice ? [{ token: choice.value, name: choice.name, origin: choice.origin, may }] : [];
}
