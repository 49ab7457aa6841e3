import type { CheckedConfig } from "./config.ts";
import { type Path, valueAt } from "./problems.ts";
import type { Filled } from "./references.ts";
import { isSecretName, proofsOf, secretsOf } from "./secrets.ts";

/** Shorter values of variables are hidden only if a name marks them as secrets, because short texts also occur by chance. */
const SHORTEST = 8;

/**
 * The values that logs, records and answers must not show: the values of keys for secrets, each value that a `${NAME}` put into another text unless
 * it is plain, passwords and keys in addresses and arguments, and the collector's headers in OpenTelemetry's variables.
 */
export function hiddenValues(config: CheckedConfig, filled: readonly Filled[], env: NodeJS.ProcessEnv): string[] {
  const found = [
    ...secretsOf(config).flatMap(({ token, value }) =>
      token && value.length < SHORTEST ? [] : [value, ...addressParts(value, isGivenSecret)],
    ),
    ...proofsOf(config).flatMap(({ name, value }) =>
      isSecretName(name) || /key$/i.test(name) ? [value, credentialsIn(value)] : [],
    ),
    ...filled.flatMap(valuesOfFilled),
    ...textsIn(config, []).flatMap(([path, text]) => [
      ...addressParts(text, isNamedSecret),
      ...argumentSecret(path, text, config),
    ]),
    ...COLLECTOR_HEADERS.flatMap((name) => collectorHeaders(env[name])),
    ...COLLECTORS.flatMap((name) => addressParts(env[name] ?? "", isGivenSecret)),
  ];
  return [...new Set(found)].filter((value) => !isCommonWord(value));
}

const COLLECTORS = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const COLLECTOR_HEADERS = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/** Values of headers, as they are written and as they are sent. */
function collectorHeaders(pairs = ""): string[] {
  return pairs.split(",").flatMap((pair) => {
    const value = pair.slice(pair.indexOf("=") + 1).trim();
    const sent = decoded(value);
    return isPlain(sent) ? [] : [value, sent, credentialsIn(sent)];
  });
}

/** The part of a header's value after `Bearer ` or another scheme; otherwise the whole value. */
function credentialsIn(header: string): string {
  return /^[\w-]+ +(\S+)$/.exec(header)?.[1] ?? header;
}

/** A value of one of these forms is never a secret. */
function isCommonWord(value: string): boolean {
  return value.length < 4 || /^(?:true|false|null|none|undefined)$/i.test(value);
}

function valuesOfFilled({ path, name, value, text, at }: Filled): string[] {
  const isSecret = isSecretVariable(name);
  if (!isSecret && (isPlainVariable(name) || isPlainPlace(path) || isInHost(text, at, value))) return [];
  const address = addressParts(value, isGivenSecret);
  if (isSecret) return /^\d{1,5}$/.test(value) ? address : [value, credentialsIn(value), ...address];
  return ADDRESS.test(value) || isPlain(value) ? address : [value, credentialsIn(value)];
}

/** The last words of a variable's name that mark its value as not secret, even after a word for secrets: `TLS_KEY_FILE`. */
const PLAIN_WORDS =
  /(?:^|_)(?:HOST|HOSTNAME|PORT|MODEL|REGION|ZONE|DIR|DIRECTORY|FOLDER|HOME|PATH|FILE|LEVEL|ENV|STAGE|NAME|USER|USERNAME|LOGNAME|VERSION|TZ|TIMEZONE|LANG|LC_[A-Z]+|LOCALE|SHELL|TERM|TMPDIR|DOMAIN|ORIGIN)$/i;
const SECRET_WORDS =
  /(?:^|_)(?:[A-Z0-9]*KEYS?|[A-Z0-9]*TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|CREDENTIALS?|AUTH|AUTHORIZATION|SIGNATURE|COOKIE|JWT|BEARER|PAT|PIN)(?:_|\d|$)/i;
function isPlainVariable(variable: string): boolean {
  return PLAIN_WORDS.test(variable) || variable === "PWD";
}
function isSecretVariable(variable: string): boolean {
  return !isPlainVariable(variable) && (SECRET_WORDS.test(variable) || isSecretName(variable));
}

/** Keys of names and descriptions that logs and records may show. */
const PLAIN_KEYS = new Set(
  `host type name surfaces scopes permissions expiresAt since defaultAgent announceTo agent agents keys channel backend description instructions
  instructionsFile model models fallbacks summaryModel tools skills dirs every deadline cert cwd path allowedOrigins trustedProxies clearTextFrom
  allowedIps events message session delivery output package retention webhookRetention eventRetention idle connect firstByte silence callTimeout
  storeBytes webhookBody restBody rpcBody bytes maxOutput timeZone cron skill missedWithin to thread`.split(/\s+/),
);

function isPlainPlace(path: Path): boolean {
  const named = path.findLastIndex((step) => typeof step === "string");
  const parents = path.slice(0, named);
  // Names of headers and variables, and options of other programs, are not keys of the configuration.
  if (parents.some((step) => /^(?:headers|env|options|settings|match)$/.test(String(step)))) return false;
  const key = String(path[named]);
  return PLAIN_KEYS.has(key) || (key === "key" && parents.at(-1) === "tls");
}

const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i;

/** True for the host or port of an address, or a part of these. */
function isInHost(text: string, at: number, value: string): boolean {
  const scheme = ADDRESS.exec(text)?.[0];
  if (scheme === undefined) return false;
  const authority = text.slice(scheme.length).split(/[/?#]/, 1)[0] as string;
  const host = scheme.length + authority.lastIndexOf("@") + 1;
  return at >= host && at + value.length <= scheme.length + authority.length;
}

/** Short or common values, which are not secrets. Hiding them would make texts unreadable. */
const PLAIN = [
  /^[+-]?\d{1,15}(?:[._]\d{1,15}){0,3}$/, // a number, a version, an IPv4 address
  /^\[?[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}\]?$/i, // an IPv6 address
  /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?$/,
  /^\d+(?:ms|s|m|h|d|KiB|MiB|GiB|KB|MB|GB|B)$/,
  /^localhost(?::\d+)?$/i,
  /^(?:~|\.{1,2}|\/(?:app|bin|data|dev|etc|home|lib|mnt|opt|private|proc|root|run|sbin|srv|sys|tmp|usr|var|Applications|Library|Users|Volumes))(?:\/[\w.@ -]+)*\/?$/, // a path
];
function isPlain(value: string): boolean {
  return value.length < SHORTEST || PLAIN.some((form) => form.test(value));
}

type IsSecretPart = (value: string, name: string | undefined) => boolean;
/** A part of an address that is written in the file. */
const isNamedSecret: IsSecretPart = (value, name) =>
  name !== undefined && value.length >= 4 && (isSecretName(name) || isSecretVariable(name));
/** A part of an address from a variable. Lower-case words of a path are not secrets. */
const isGivenSecret: IsSecretPart = (value, name) =>
  isNamedSecret(value, name) || (!isPlain(value) && (name !== undefined || !/^[a-z._-]+$/.test(value)));

/** The parts of an address that may be secrets, encoded and decoded: its user and password, its path, and its query. */
function addressParts(address: string, isSecret: IsSecretPart): string[] {
  if (!ADDRESS.test(address) || !URL.canParse(address)) return [];
  const { username, password, pathname, search, hash } = new URL(address);
  const parts: [value: string, name: string | undefined][] = [
    [password, "password"],
    [password === "" ? username : "", "user"],
    ...pathname.split("/").map((part): [string, undefined] => [part, undefined]),
    ...[search, hash].flatMap((pairs) =>
      pairs
        .slice(1)
        .split("&")
        .map((pair): [string, string] => [
          pair.slice(pair.indexOf("=") + 1),
          pair.slice(0, Math.max(0, pair.indexOf("="))),
        ]),
    ),
  ];
  return parts.flatMap(([value, name]) => {
    const meant = decoded(value);
    return value !== "" && isSecret(meant, name) ? [value, meant] : [];
  });
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function textsIn(node: unknown, path: Path): [Path, string][] {
  if (typeof node === "string") return [[path, node]];
  if (typeof node !== "object" || node === null) return [];
  const inside: [string | number, unknown][] = Array.isArray(node) ? [...node.entries()] : Object.entries(node);
  return inside.flatMap(([step, item]) => textsIn(item, [...path, step]));
}

/** The secret in an argument of a program. */
function argumentSecret(path: Path, text: string, config: CheckedConfig): string[] {
  const after = text.indexOf("=") + 1;
  if (!path.includes("run") || (after === 0 && text.startsWith("-"))) return [];
  return isSecretArgument(path, text, config) ? [text.slice(after)] : [];
}

/** An argument like `--api-key=…`, or the one after `--api-key`. */
export function isSecretArgument(path: Path, value: string, checked: CheckedConfig): boolean {
  const before = valueAt(checked, [...path.slice(0, -1), Number(path.at(-1)) - 1]);
  const isFlag = (text: unknown) => typeof text === "string" && text.startsWith("-") && isSecretName(text);
  return (isFlag(value) && value.includes("=")) || isFlag(before) || /^\w*(key|token|secret)\w*=/i.test(value);
}
