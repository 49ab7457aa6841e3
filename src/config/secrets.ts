import { methods } from "#generated/methods.ts";
import { nearest } from "#kit/nearest.ts";
import { isSecretHeader } from "#kit/secret-headers.ts";
import { type CheckedConfig, hashOf } from "./config.ts";
import { dotted, type Findings, type Path, type Report, valueAt } from "./problems.ts";
import { meantReference } from "./references.ts";

const SHORT = 16;

/** A secret with its surface. A `token` is sent in a header; the others sign, `standard` as Standard Webhooks. */
type Secret = { surface: string; path: Path; value: string; token: boolean; standard: boolean };

/** Checks the secrets of callers and signers. `exposed`: another machine can reach the gateway, or it is in production. */
export function checkSecrets(config: CheckedConfig, exposed: boolean, { refuse, warn }: Findings): void {
  const refuseWeak = exposed ? refuse : warn;
  checkKeysAndTokens(config, refuse);

  const first = new Map<string, Secret>();
  for (const secret of secretsOf(config)) {
    const { path, value, surface, token } = secret;
    const flaw = flawOf(secret);
    if (flaw !== undefined) {
      refuse(path, flaw);
      continue;
    }
    if (value.length < SHORT) {
      const message = `is shorter than ${SHORT} characters: anyone can guess it. Make a longer one, for instance with openssl rand -hex 24.`;
      refuseWeak(path, message);
    }
    const hash = hashOf(value);
    const other = first.get(hash);
    if (other === undefined) first.set(hash, secret);
    else if (other.surface !== surface) {
      const message = `is the same as ${dotted(other.path)}: give each surface a secret of its own, or a leak of one opens both.`;
      refuseWeak(path, message);
    } else if (token && other.token) {
      refuse(path, `is the same token as ${dotted(other.path)}: remove one, or give each its own.`);
    }
  }
}

/**
 * The places of the secrets that authenticate callers, or sign. `*` stands for any name; a list may replace a single entry.
 * `type`: only next to a `type` of this value. `without`: only without this key.
 */
const SECRETS: readonly { at: string; surface: string; token?: true; type?: string; without?: string }[] = [
  { at: "gateway.rest.auth.keys.key", surface: "rest", token: true },
  { at: "gateway.rpc.auth.tokens.token", surface: "rpc", token: true },
  { at: "gateway.console.token", surface: "console", token: true },
  { at: "webhooks.token", surface: "webhooks", token: true },
  { at: "webhooks.token.value", surface: "webhooks", token: true },
  { at: "webhooks.mappings.*.verify.secret", surface: "webhooks" },
  // Anyone who knows the address of an incoming webhook of Slack can post there.
  { at: "channels.*.url", surface: "channels", type: "slack", without: "botToken" },
  { at: "channels.*.botToken", surface: "channels" },
  { at: "channels.*.secret", surface: "channels" },
  { at: "notify.*.secret", surface: "notify" },
  { at: "agents.*.http.secret", surface: "agents" },
];

/** The places of the credentials of the gateway. */
const PROOFS: readonly string[] = [
  "providers.*.apiKey",
  "providers.*.headers.*",
  "agents.*.http.headers.*",
  "agents.*.a2a.headers.*",
  "agents.*.command.env.*",
  "agents.*.acp.env.*",
  "tools.*.headers.*",
  "tools.*.env.*",
  "gateway.tracing.headers.*",
];

/** The texts at a place. */
function textsAt(node: unknown, [step, ...steps]: readonly string[], path: Path = []): { path: Path; value: string }[] {
  if (Array.isArray(node))
    return node.flatMap((one, index) => textsAt(one, step === undefined ? [] : [step, ...steps], [...path, index]));
  if (step === undefined) return typeof node === "string" ? [{ path, value: node }] : [];
  if (typeof node !== "object" || node === null) return [];
  const keys = step === "*" ? Object.keys(node) : Object.hasOwn(node, step) ? [step] : [];
  return keys.flatMap((key) => textsAt((node as Record<string, unknown>)[key], steps, [...path, key]));
}

/** All secrets that authenticate callers, or sign. */
export function secretsOf(config: CheckedConfig): Secret[] {
  return SECRETS.flatMap(({ at, surface, token = false, type, without }) =>
    textsAt(config, at.split(".")).flatMap(({ path, value }) => {
      const parent = path.slice(
        0,
        path.findLastIndex((step) => typeof step === "string"),
      );
      const kind = valueAt(config, [...parent, "type"]);
      if (type !== undefined && kind !== type) return [];
      if (without !== undefined && valueAt(config, [...parent, without]) !== undefined) return [];
      const standard = !token && type === undefined && (surface !== "webhooks" || kind === "standard-webhooks");
      return [{ surface, path, value, token, standard }];
    }),
  );
}

function flawOf({ surface, value, token, standard }: Secret): string | undefined {
  if (value.trim() === "") return `is empty: give it a value, best as \${NAME} from the environment.`;
  if (value.includes("${")) return "holds `${` after its variables were filled in: a secret never does.";
  if (standard && value.startsWith("whsec_") && !/^whsec_[A-Za-z0-9+/]{2,}={0,2}$/.test(value))
    return "begins with `whsec_`, but the rest is not base64: copy the whole secret, as it was shown.";
  if (value.startsWith("sha256:") && token) {
    if (surface !== "rest")
      return "is a hash, which only a key of `gateway.rest.auth.keys` can be: give the token itself.";
    if (!/^sha256:[0-9a-fA-F]{64}$/.test(value)) return "is not a hash: write 64 hexadecimal digits after `sha256:`.";
  }
  if (token && !/^[!-~]+$/.test(value))
    return "holds a space or a character that no header can carry: use letters and digits.";
  return undefined;
}

function checkKeysAndTokens({ gateway }: CheckedConfig, refuse: Report): void {
  const { keys } = gateway.rest.auth;
  const { tokens } = gateway.rpc.auth;
  const checkName = (path: Path, { name }: { name: string }, index: number, list: readonly { name: string }[]) => {
    if (list.findIndex((other) => other.name === name) < index)
      refuse([...path, "name"], "is also the name of another entry in this list: choose another name.");
  };
  keys.forEach((key, index) => {
    const path = ["gateway", "rest", "auth", "keys", index];
    checkName(path, key, index, keys);
    checkExpiry([...path, "expiresAt"], key.expiresAt, refuse);
  });
  tokens.forEach((token, index) => {
    const path = ["gateway", "rpc", "auth", "tokens", index];
    checkName(path, token, index, tokens);
    if (typeof token.permissions !== "string") checkPermissions([...path, "permissions"], token.permissions, refuse);
  });
}

/** `Date` reads the 31st of February as the 3rd of March. */
function checkExpiry(path: Path, expiresAt: string | undefined, refuse: Report): void {
  if (expiresAt === undefined) return;
  const [year, month, day] = expiresAt.slice(0, 10).split("-").map(Number) as [number, number, number];
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  if (day <= last) return;
  const meant = `${expiresAt.slice(0, 8)}${last}`;
  refuse(path, `names a day that the calendar does not have: the last of that month is ${meant}.`);
}

function checkPermissions(path: Path, permissions: readonly string[], refuse: Report): void {
  const known = Object.keys(methods);
  for (const [index, permission] of permissions.entries()) {
    if (permission === "*" || known.includes(permission)) continue;
    const meant = nearest(permission, known);
    const hint = meant ? `did you mean \`${meant}\`?` : `there are *, ${known.join(", ")}.`;
    refuse([...path, index], `is not the name of a method; ${hint}`);
  }
}

/** Refuses a secret that looks like a reference but would be used as written. `written` is the configuration before its references were filled in. */
export function checkReferences(config: CheckedConfig, written: unknown, { refuse }: Findings): void {
  const proofs = proofsOf(config).filter(({ path }) => !path.includes("env"));
  for (const { path } of [...secretsOf(config), ...proofs]) {
    const right = meantReference(valueAt(written, path));
    if (right === undefined) continue;
    refuse(
      path,
      `looks like a reference to a variable, but is used as written: write \`${right}\`. If it is the secret itself, put it in a variable.`,
    );
  }
}

/** All headers and variables that are sent, keys of providers, and addresses of databases. */
export function proofsOf(config: CheckedConfig) {
  return [...PROOFS, ...(config.store.type === "postgres" ? ["store.url"] : [])].flatMap((at) =>
    textsAt(config, at.split(".")).map((proof) => {
      return { ...proof, name: String(proof.path.findLast((step) => typeof step === "string")) };
    }),
  );
}

/** True if a name marks its value as a secret: `apiKey` and `API_KEY` are compared as `api-key`. */
export function isSecretName(name: string): boolean {
  return isSecretHeader(
    name
      .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
      .replaceAll("_", "-")
      .toLowerCase(),
  );
}
