import type { SignatureScheme } from "#generated/clients/typescript/src/webhooks.ts";
import { argumentsOf, curlOf } from "./curl.ts";
import { isObject } from "./schema-form.ts";
import { commandOf } from "./shell.ts";

/** A request as a sender would make it. */
export type HookRequest = { headers: Readonly<Record<string, string>>; body: unknown };

/** Typed headers: `name: value`, one per line. An invalid line is a fault. */
export function headersOfLines(text: string): { headers: Record<string, string> } | { fault: string } {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const [, name, value] = /^\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      return {
        fault: `“${line.trim().slice(0, 60)}” is not a header. Write one per line, such as x-github-event: push.`,
      };
    headers[name.toLowerCase()] = value;
  }
  return { headers };
}

export function linesOfHeaders(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

/** A typed payload. The gateway's mappings accept an object or a list. */
export function payloadOf(text: string): { body: Record<string, unknown> | unknown[] } | { fault: string } {
  if (text.trim() === "") return { body: {} };
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== "object" || body === null) return { fault: "The payload must be a JSON object or array." };
    return { body: body as Record<string, unknown> | unknown[] };
  } catch (error) {
    return { fault: `Invalid JSON: ${(error as Error).message}` };
  }
}

/** The same request with a value at the path of a `match` pair. If the path is not possible, the request does not change. */
export function withPair(request: HookRequest, path: string, value: string): HookRequest {
  const dot = path.indexOf(".");
  const [root, rest] = [path.slice(0, dot), path.slice(dot + 1)];
  if (root === "headers") return { ...request, headers: { ...request.headers, [rest.toLowerCase()]: value } };
  if (root !== "body") return request;
  const steps = rest.split(".");
  if (steps.includes("__proto__")) return request;
  const put = (node: unknown, at: number): unknown => {
    const step = steps[at];
    if (step === undefined) return value;
    if (Array.isArray(node) || (/^(?:0|[1-9]\d?)$/.test(step) && !isObject(node))) {
      const list = Array.isArray(node) ? [...node] : [];
      list[Number(step)] = put(list[Number(step)], at + 1);
      return Array.from(list, (item: unknown) => item ?? null);
    }
    const object = isObject(node) ? node : {};
    return { ...object, [step]: put(Object.hasOwn(object, step) ? object[step] : undefined, at + 1) };
  };
  return { ...request, body: put(request.body, 0) };
}

/** The value at the path of a pair, if the request has one. */
function valueAt({ headers, body }: HookRequest, path: string): unknown {
  const [root, ...steps] = path.split(".");
  if (root === "headers") return headers[steps.join(".").toLowerCase()];
  return steps.reduce<unknown>(
    (node, step) => (typeof node === "object" && node !== null ? (node as Record<string, unknown>)[step] : undefined),
    body,
  );
}

/** The same request with a value for each placeholder of a template that has none: the name of its first place. */
export function withPlaces(request: HookRequest, template: string): HookRequest {
  return [...template.matchAll(/\{((?:body|headers)\.[^{}]+)\}/g)].reduce((filled, [, placeholder = ""]) => {
    const places = placeholder.split(/\|(?=(?:body|headers)\.)/);
    const [first = ""] = places;
    return places.some((place) => valueAt(filled, place) !== undefined)
      ? filled
      : withPair(filled, first, first.slice(first.lastIndexOf(".") + 1));
  }, request);
}

/**
 * The lines of a script of `sh` that sign, and the header with the result. The script gets the secret as `$secret` and the body as `$body`.
 */
const SIGNING: Readonly<
  Record<SignatureScheme, { secret: string; lines: readonly string[]; headers: readonly string[] }>
> = {
  github: {
    secret: "GITHUB_WEBHOOK_SECRET",
    lines: [`sig=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" | sed "s/.*= //")`],
    headers: ["x-hub-signature-256: sha256=$sig"],
  },
  stripe: {
    secret: "STRIPE_WEBHOOK_SECRET",
    lines: ["t=$(date +%s)", `sig=$(printf %s "$t.$body" | openssl dgst -sha256 -hmac "$secret" | sed "s/.*= //")`],
    headers: ["stripe-signature: t=$t,v1=$sig"],
  },
  slack: {
    secret: "SLACK_SIGNING_SECRET",
    lines: ["t=$(date +%s)", `sig=$(printf %s "v0:$t:$body" | openssl dgst -sha256 -hmac "$secret" | sed "s/.*= //")`],
    headers: ["x-slack-request-timestamp: $t", "x-slack-signature: v0=$sig"],
  },
  linear: {
    secret: "LINEAR_WEBHOOK_SECRET",
    lines: [
      `body=$(printf %s "$body" | sed "s/\\(.webhookTimestamp.: *\\)[0-9]*/\\1$(date +%s)000/")`,
      `sig=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" | sed "s/.*= //")`,
    ],
    headers: ["linear-signature: $sig"],
  },
  twilio: {
    secret: "TWILIO_AUTH_TOKEN",
    lines: [
      "url=$1; shift",
      `hash=$(printf %s "$body" | openssl dgst -sha256 | sed "s/.*= //")`,
      `case "$url" in *[?]*) join="&" ;; *) join="?" ;; esac`,
      `sig=$(printf %s "$url\${join}bodySHA256=$hash" | openssl dgst -sha1 -hmac "$secret" -binary | base64)`,
    ],
    headers: ["x-twilio-signature: $sig"],
  },
  "standard-webhooks": {
    secret: "WEBHOOK_SECRET",
    lines: [
      "t=$(date +%s) id=msg_$(date +%s)",
      `key=$(printf %s "\${secret#whsec_}" | base64 -d | od -An -tx1 | tr -d " \\n")`,
      `sig=$(printf %s "$id.$t.$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)`,
    ],
    headers: ["webhook-id: $id", "webhook-timestamp: $t", "webhook-signature: v1,$sig"],
  },
};

type Wanted = {
  origin: string;
  path: string;
  verify: SignatureScheme | null;
  /** The address that the sender signs, for Twilio. */
  verifyUrl?: string | null | undefined;
  headers?: Readonly<Record<string, string>>;
  body: string;
};

/**
 * The command that sends a webhook: with the shared token, or signed as the mapping's `verify` wants it. The script that signs is the same text
 * for all requests; what is sent reaches it as arguments.
 */
export function curlOfHook({ origin, path, verify, verifyUrl, headers = {}, body: sent }: Wanted): string {
  const body = withTime(verify, sent);
  const json = { "content-type": "application/json", ...headers };
  const request = { method: "POST", origin, path, headers: json, body };
  if (verify === null) return curlOf({ ...request, secret: "WEBHOOK_TOKEN" });
  const { secret, lines, headers: signed } = SIGNING[verify];
  const script = [
    "secret=$1 body=$2; shift 2",
    ...lines,
    `curl "$@" ${signed.map((header) => `-H "${header}" `).join("")}--data-raw "$body"`,
  ].join("; ");
  const args = argumentsOf(request);
  const encoder = new TextEncoder();
  const given = [body, ...(verify === "twilio" ? [verifyUrl ?? origin + path] : [])].map((text) =>
    encoder.encode(text),
  );
  return commandOf([...given, ...args.map(({ value }) => value)], secret, (word, variable) =>
    [
      `sh -c ${word(script)} sh "${variable}" ${given.map(word).join(" ")}`,
      ...args.map(({ option, value }) => option + word(value)),
    ].join(" \\\n  "),
  );
}

/** The body with the current time, if its sender signs the time in the body. */
export function withTime(verify: SignatureScheme | null, body: string): string {
  const parsed = verify === "linear" ? payloadOf(body) : undefined;
  if (parsed === undefined || "fault" in parsed || Array.isArray(parsed.body)) return body;
  return JSON.stringify({ ...parsed.body, webhookTimestamp: Date.now() });
}

/** The variable that holds the secret in such a command. */
export function secretVariable(verify: SignatureScheme | null): string {
  return verify === null ? "WEBHOOK_TOKEN" : SIGNING[verify].secret;
}
