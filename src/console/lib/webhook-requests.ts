import type { SignatureScheme } from "#generated/clients/typescript/src/webhooks.ts";
import { curlOf } from "./curl.ts";

/** A request as a sender would make it. */
export type HookRequest = { headers: Readonly<Record<string, string>>; body: unknown };

/** Headers as they are typed: `name: value`, one a line. A line that is none is a fault. */
export const headersOfLines = (text: string): { headers: Record<string, string> } | { fault: string } => {
  const headers: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const [, name, value] = /^\s*([!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined || value === undefined)
      return { fault: `“${line.trim().slice(0, 60)}” is no header. Write one a line, as x-github-event: push.` };
    headers[name.toLowerCase()] = value;
  }
  return { headers };
};

export const linesOfHeaders = (headers: Readonly<Record<string, string>>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");

/** A payload as it is typed. The gateway's mappings take an object or a list. */
export const payloadOf = (text: string): { body: Record<string, unknown> | unknown[] } | { fault: string } => {
  if (text.trim() === "") return { body: {} };
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== "object" || body === null) return { fault: "A payload is a JSON object or a list." };
    return { body: body as Record<string, unknown> | unknown[] };
  } catch (error) {
    return { fault: `This is not JSON yet: ${(error as Error).message}` };
  }
};

/** The same request with a value at the path of a `match` pair. Where the path cannot be, the request stays as it is. */
export const withPair = (request: HookRequest, path: string, value: string): HookRequest => {
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
};

/** The value at the path of a pair, where the request has one. */
const valueAt = ({ headers, body }: HookRequest, path: string): unknown => {
  const [root, ...steps] = path.split(".");
  if (root === "headers") return headers[steps.join(".").toLowerCase()];
  return steps.reduce<unknown>(
    (node, step) => (typeof node === "object" && node !== null ? (node as Record<string, unknown>)[step] : undefined),
    body,
  );
};

/** The same request with a value at each place that a template names and the request does not have: the name of the place. */
export const withPlaces = (request: HookRequest, template: string): HookRequest => {
  const places = [...template.matchAll(/\{((?:body|headers)\.[^{}]+)\}/g)].map(([, place = ""]) => place);
  return places.reduce(
    (filled, place) =>
      valueAt(filled, place) === undefined ? withPair(filled, place, place.slice(place.lastIndexOf(".") + 1)) : filled,
    request,
  );
};

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The text that openssl signs, and the headers with the result. `$1` is the secret's variable. */
const SIGNING: Readonly<
  Record<SignatureScheme, { secret: string; lines: readonly string[]; headers: readonly string[] }>
> = {
  github: {
    secret: "GITHUB_WEBHOOK_SECRET",
    lines: [`SIG=$(printf %s "$BODY" | openssl dgst -sha256 -hmac "$GITHUB_WEBHOOK_SECRET" | sed 's/.*= //')`],
    headers: ["x-hub-signature-256: sha256=$SIG"],
  },
  stripe: {
    secret: "STRIPE_WEBHOOK_SECRET",
    lines: [
      "T=$(date +%s)",
      `SIG=$(printf %s "$T.$BODY" | openssl dgst -sha256 -hmac "$STRIPE_WEBHOOK_SECRET" | sed 's/.*= //')`,
    ],
    headers: ["stripe-signature: t=$T,v1=$SIG"],
  },
  slack: {
    secret: "SLACK_SIGNING_SECRET",
    lines: [
      "T=$(date +%s)",
      `SIG=$(printf %s "v0:$T:$BODY" | openssl dgst -sha256 -hmac "$SLACK_SIGNING_SECRET" | sed 's/.*= //')`,
    ],
    headers: ["x-slack-request-timestamp: $T", "x-slack-signature: v0=$SIG"],
  },
  "standard-webhooks": {
    secret: "WEBHOOK_SECRET",
    lines: [
      "T=$(date +%s); ID=msg_$T",
      `KEY=$(printf %s "\${WEBHOOK_SECRET#whsec_}" | base64 -d | od -An -tx1 | tr -d ' \\n')`,
      `SIG=$(printf %s "$ID.$T.$BODY" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$KEY" -binary | base64)`,
    ],
    headers: ["webhook-id: $ID", "webhook-timestamp: $T", "webhook-signature: v1,$SIG"],
  },
};

type Wanted = { url: string; verify: SignatureScheme | null; headers?: Readonly<Record<string, string>>; body: string };

/** The command that sends a webhook: with the shared token, or signed as the mapping's `verify` wants it. */
export const curlOfHook = ({ url, verify, headers = {}, body }: Wanted): string => {
  const json = { "content-type": "application/json", ...headers };
  if (verify === null)
    return curlOf({ method: "POST", url, headers: { authorization: "Bearer $WEBHOOK_TOKEN", ...json }, body });
  const { lines, headers: signed } = SIGNING[verify];
  return [
    `BODY=${quoted(body)}`,
    ...lines,
    [
      `curl ${quoted(url)}`,
      ...signed.map((header) => `-H "${header}"`),
      ...Object.entries(json).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
      '--data-binary "$BODY"',
    ].join(" \\\n  "),
  ].join("\n");
};

/** The variable that holds the secret in such a command. */
export const secretVariable = (verify: SignatureScheme | null): string =>
  verify === null ? "WEBHOOK_TOKEN" : SIGNING[verify].secret;
