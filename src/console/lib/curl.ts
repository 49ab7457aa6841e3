import { commandOf, isPrintable, printfOf } from "./shell.ts";

/** A variable of the reader's shell that holds a secret of the gateway. */
export type SecretVariable = "REST_API_KEY" | "RPC_TOKEN" | "WEBHOOK_TOKEN" | "SIGN_IN_CODE";

/** A request that a curl command can repeat. */
type CurlRequest = {
  method: string;
  origin: string;
  /** With the query. It has a character for each byte. */
  path: string;
  /** The variable that the command names in the place of the bearer token. */
  secret?: SecretVariable | undefined;
  /** A value has a character for each byte. Null: curl must not add this header. */
  headers?: Readonly<Record<string, string | null>>;
  body?: string | Uint8Array | undefined;
};

/** An option of curl, and its value. */
type Argument = { option: string; value: Uint8Array };

/** A path that curl sends unchanged. It reads brackets and braces as patterns, resolves dots, cuts at `#`, and refuses spaces. */
const ORDINARY_PATH = /^(?!.*\/(?:\.|%2e){1,2}(?:[/?]|$))\/[\w\-.~!$&'()*+,;=:@%/?]*$/i;
/** From this size on curl waits for `100 Continue` first. */
const ASKS_FROM = 1024 * 1024;
/**
 * Linux accepts 128 KiB for one argument. All headers have at most 16 KiB. Quotes make a body three times as long, and `printf` makes headers four
 * times as long; with `sh -c` both are in one argument.
 */
const MOST_IN_ARGUMENT = 16 * 1024;

/**
 * The command that sends a request again, in any of the shells that `shell.ts` names. All that was sent is quoted. The only variable in it is the
 * secret's.
 */
export function curlOf(request: CurlRequest): string {
  const { secret } = request;
  const body = bytesOfBody(request.body);
  const args = argumentsOf(request);
  const isArgument = body.length > 0 && body.length <= MOST_IN_ARGUMENT && isPrintable(body);
  if (isArgument) args.push({ option: "--data-raw ", value: body });
  const isPiped = body.length > 0 && !isArgument;
  const values = args.map(({ value }) => value);
  const command = commandOf(values, secret, (word, variable) => {
    const [first, ...others] = args.map(({ option, value }) => option + word(value));
    const authorization = secret === undefined ? [] : [`-H "authorization: Bearer ${variable}"`];
    return [`curl ${first}`, ...authorization, ...others, ...(isPiped ? ["--data-binary @-"] : [])].join(" \\\n  ");
  });
  return isPiped ? `${printfOf(body)} | ${command}` : command;
}

/** The arguments of curl but for the body and the secret; the address is the first. */
export function argumentsOf({ method, origin, path, headers = {}, body }: CurlRequest): Argument[] {
  const { length } = bytesOfBody(body);
  const [address, ...target] = addressOf(origin, path);
  return [
    ...(address === undefined ? [] : [address]),
    ...methodOf(method, length > 0),
    ...target,
    ...Object.entries(headers).map(([name, value]) => ({ option: "-H ", value: headerLine(name, value) })),
    ...(length >= ASKS_FROM ? [{ option: "-H ", value: bytesOf("expect:") }] : []),
  ];
}

function bytesOfBody(body: string | Uint8Array = ""): Uint8Array {
  return typeof body === "string" ? new TextEncoder().encode(body) : body;
}

/** A text with a character for each byte. A text with other characters is encoded as UTF-8. */
function bytesOf(text: string): Uint8Array {
  return /^[\0-\xff]*$/.test(text)
    ? Uint8Array.from(text, (character) => character.charCodeAt(0))
    : new TextEncoder().encode(text);
}

/** The origin can have a path if there is a proxy in front. */
function addressOf(origin: string, path: string): Argument[] {
  if (ORDINARY_PATH.test(path)) return [{ option: "", value: bytesOf(origin + path) }];
  const prefix = path.startsWith("/") ? new URL(origin).pathname.replace(/\/$/, "") : "";
  return [
    { option: "", value: bytesOf(origin) },
    { option: "--request-target ", value: bytesOf(prefix + path) },
  ];
}

/** Without a body, `-X HEAD` would wait for the body of the answer. */
function methodOf(method: string, hasBody: boolean): Argument[] {
  if (method === (hasBody ? "POST" : "GET")) return [];
  const isHead = method === "HEAD" && !hasBody;
  return [{ option: isHead ? "--head -X " : "-X ", value: bytesOf(method) }];
}

/** A header in curl's form: `name;` sends an empty value, `name:` sends none. A header cannot contain a line break. */
function headerLine(name: string, value: string | null): Uint8Array {
  const line = value?.replaceAll(/[\r\n\0]/g, " ").replaceAll(/^[ \t]+|[ \t]+$/g, "");
  return bytesOf(line === undefined ? `${name}:` : line === "" ? `${name};` : `${name}: ${line}`);
}

/** The command that sends a message to an agent, with the key or its variable. */
export function chatCommand(origin: string, body: object, key?: string): string {
  return curlOf({
    method: "POST",
    origin,
    path: "/api/v1/chat/send",
    secret: key === undefined ? "REST_API_KEY" : undefined,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });
}
