import { createHash } from "node:crypto";
import { methods } from "#generated/methods.ts";
import { nearest } from "#kit/nearest.ts";
import type { CheckedConfig } from "./conform.ts";
import { dotted, type Findings, type Path, type Report, valueAt } from "./problems.ts";
import { meantReference } from "./references.ts";

const SHORT = 16;

/** A secret with its surface. Those with `token` are sent in a header and known by it; the others sign, `standard` as Standard Webhooks. */
type Secret = { surface: string; path: Path; value: string; token: boolean; standard?: boolean };

/** Checks the secrets of callers and signers. `exposed`: another machine can reach the gateway, or it is in production. */
export function checkSecrets(config: CheckedConfig, exposed: boolean, { refuse, warn }: Findings): void {
  const refuseWeak = exposed ? refuse : warn;
  checkTokenNames(config, refuse);
  checkPermissions(config, refuse);
  checkExpiries(config, refuse);

  const secrets = secretsOf(config);
  const first = new Map<string, Secret>();
  for (const secret of secrets) {
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

/** A token as it is kept: SHA-256, in hexadecimal digits. */
export function hashOf(token: string): string {
  const hashed = /^sha256:([0-9a-fA-F]{64})$/.exec(token)?.[1];
  return hashed?.toLowerCase() ?? createHash("sha256").update(token).digest("hex");
}

/** Every secret that lets somebody in, or signs. */
export function secretsOf({ gateway, webhooks, channels, agents }: CheckedConfig): Secret[] {
  const token = (surface: string, path: Path, value: string): Secret => ({ surface, path, value, token: true });
  const { rest, rpc, console } = gateway;
  const shared = webhooks.token ?? [];
  return [
    ...rest.auth.keys.map(({ key }, index) => token("rest", ["gateway", "rest", "auth", "keys", index, "key"], key)),
    ...rpc.auth.tokens.map((entry, index) =>
      token("rpc", ["gateway", "rpc", "auth", "tokens", index, "token"], entry.token),
    ),
    ...(console.token === undefined ? [] : [token("console", ["gateway", "console", "token"], console.token)]),
    ...(typeof shared === "string"
      ? [token("webhooks", ["webhooks", "token"], shared)]
      : shared.map((entry, index) =>
          typeof entry === "string"
            ? token("webhooks", ["webhooks", "token", index], entry)
            : token("webhooks", ["webhooks", "token", index, "value"], entry.value),
        )),
    ...Object.entries(webhooks.mappings).flatMap(([name, { verify }]) =>
      verify ? signingOf(["webhooks", "mappings", name, "verify", "secret"], verify) : [],
    ),
    ...Object.entries(channels).map(([name, channel]): Secret => {
      const { type, url } = channel;
      if (type === "slack") return { surface: "channels", path: ["channels", name, "url"], value: url, token: false };
      const path = ["channels", name, "secret"];
      return { surface: "channels", path, value: channel.secret, token: false, standard: true };
    }),
    ...Object.entries(agents).flatMap(([name, { http }]): Secret[] => {
      if (http?.secret === undefined) return [];
      const path = ["agents", name, "http", "secret"];
      return [{ surface: "agents", path, value: http.secret, token: false, standard: true }];
    }),
  ];
}

type Verify = NonNullable<CheckedConfig["webhooks"]["mappings"][string]["verify"]>;

const signingOf = (path: Path, { type, secret }: Verify): Secret[] =>
  [secret].flat().map((value, index) => ({
    surface: "webhooks",
    path: typeof secret === "string" ? path : [...path, index],
    value,
    token: false,
    standard: type === "standard-webhooks",
  }));

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

function checkTokenNames({ gateway }: CheckedConfig, refuse: Report): void {
  const lists = { rest: ["auth", "keys"], rpc: ["auth", "tokens"] } as const;
  const named = { rest: gateway.rest.auth.keys, rpc: gateway.rpc.auth.tokens };
  for (const surface of ["rest", "rpc"] as const) {
    const names = named[surface].map(({ name }) => name);
    names.forEach((name, index) => {
      if (names.indexOf(name) === index) return;
      refuse(
        ["gateway", surface, ...lists[surface], index, "name"],
        "is also the name of another entry in this list: choose another name.",
      );
    });
  }
}

/** `Date` takes the 31st of February for the 3rd of March. */
function checkExpiries({ gateway }: CheckedConfig, refuse: Report): void {
  gateway.rest.auth.keys.forEach(({ expiresAt }, index) => {
    if (expiresAt === undefined) return;
    const [year, month, day] = expiresAt.slice(0, 10).split("-").map(Number) as [number, number, number];
    const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
    if (day <= last) return;
    const meant = `${expiresAt.slice(0, 8)}${last}`;
    refuse(
      ["gateway", "rest", "auth", "keys", index, "expiresAt"],
      `names a day that the calendar does not have: the last of that month is ${meant}.`,
    );
  });
}

function checkPermissions({ gateway }: CheckedConfig, refuse: Report): void {
  const known = Object.keys(methods);
  gateway.rpc.auth.tokens.forEach(({ permissions }, token) => {
    if (typeof permissions === "string") return;
    permissions.forEach((permission, index) => {
      if (permission === "*" || known.includes(permission)) return;
      const meant = nearest(permission, known);
      const hint = meant ? `did you mean \`${meant}\`?` : `there are *, ${known.join(", ")}.`;
      refuse(["gateway", "rpc", "auth", "tokens", token, "permissions", index], `is not the name of a method; ${hint}`);
    });
  });
}

/** Refuses a secret that was meant as a reference but would be taken as it stands. `written` is the configuration before its references were filled in. */
export function checkReferences(config: CheckedConfig, written: unknown, { refuse }: Findings): void {
  for (const path of [...secretsOf(config).map(({ path }) => path), ...otherSecrets(config)]) {
    const right = meantReference(valueAt(written, path));
    if (right === undefined) continue;
    refuse(
      path,
      `looks like a reference to a variable, but is taken as it stands: write \`${right}\`. If it is the secret itself, put it in a variable.`,
    );
  }
}

/** The secrets by which the gateway proves to others who it is. */
function otherSecrets({ agents, providers, tools, store }: CheckedConfig): Path[] {
  const headersAt = (path: Path, of: { headers?: Readonly<Record<string, string>> } | undefined): Path[] =>
    Object.keys(of?.headers ?? {}).map((name) => [...path, "headers", name]);
  return [
    ...Object.entries(providers).flatMap(([name, provider]) => [
      ["providers", name, "apiKey"],
      ...headersAt(["providers", name], provider),
    ]),
    ...Object.entries(agents).flatMap(([name, { http, a2a }]) => [
      ...headersAt(["agents", name, "http"], http),
      ...headersAt(["agents", name, "a2a"], a2a),
    ]),
    ...Object.entries(tools).flatMap(([name, server]) =>
      server.type === "http" ? headersAt(["tools", name], server) : [],
    ),
    ...(store.type === "postgres"
      ? typeof store.url === "string"
        ? [["store", "url"]]
        : store.url.map((_, index) => ["store", "url", index])
      : []),
  ];
}
