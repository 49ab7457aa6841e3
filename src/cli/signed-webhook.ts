import { sign } from "#generated/clients/typescript/src/webhooks.ts";
import { FORM, jsonOfForm, PAYLOAD } from "#kit/forms.ts";
import type { Calling } from "./calling.ts";
import { readMappings } from "./configured.ts";
import { CliError, LIMITED, NOT_ALLOWED, NOT_FOUND, notAReply, UNREACHABLE, UsageError } from "./failures.ts";
import { headersOf, jsonOf as parseJson } from "./values.ts";

export type SignedOptions = {
  config?: string;
  mapping?: string;
  secret?: string;
  secretEnv?: string;
  header: string[];
  id?: string;
  event?: string;
  form?: boolean;
  signedUrl?: string;
};

export type Sender = "github" | "stripe" | "slack" | "linear" | "twilio" | "standard";

const ID_IN_PAYLOAD: Partial<Record<Sender, string>> = { slack: "`event_id` or `trigger_id`", stripe: "`id`" };

/** The names of the mappings, as a sentence after a space. */
export function listed(names: readonly string[]): string {
  return names.length === 0
    ? " There are no mappings."
    : ` The ${names.length === 1 ? "mapping is" : "mappings are"} ${names.join(", ")}.`;
}

type SignedCall = Pick<Calling<SignedOptions>, "address" | "options" | "signal">;

/** Sends a body to a mapping's own address, with the headers of its sender, and gives the answer. */
export async function sendSigned(
  { address, options, signal }: SignedCall,
  sender: Sender,
  payload: { text: string; name: string },
): Promise<unknown> {
  const { mapping, secretEnv, id, event } = options;
  if (!mapping) throw new UsageError("A signed request goes to a mapping's own address.", "name it: --mapping NAME");
  const configured = await readMappings(options.config, process.env, address.url);
  const secret = options.secret ?? (secretEnv === undefined ? configured?.secretOf(mapping) : process.env[secretEnv]);
  if (!secret)
    throw new UsageError(
      secretEnv
        ? `The variable ${secretEnv} is not set.`
        : configured === undefined
          ? "There is no secret to sign with."
          : `There is no secret to sign with: the configuration has no verify.secret for ${mapping}.${listed(configured.names)}`,
      "pass --secret-env NAME or --secret SECRET",
    );
  const idPlace = id === undefined ? undefined : ID_IN_PAYLOAD[sender];
  if (idPlace) throw new UsageError(`--id has no effect with --as ${sender}: ${idPlace} of the payload is the id.`);
  const scheme = sender === "standard" ? "standard-webhooks" : sender;
  const signedUrl = options.signedUrl ?? configured?.urlOf(mapping);
  if (sender === "twilio" && !signedUrl)
    throw new UsageError(
      "Twilio signs the address of the webhook, and the configuration has no verify.url for it.",
      "pass the address as it is configured at Twilio: --signed-url URL",
    );
  const { body, type } = bodyOf(payload, sender, options.form === true);
  if (sender === "twilio" && id !== undefined) refuseIdOfTwilio(body);
  const headers = {
    "content-type": type,
    ...(sender === "github" && { "x-github-event": event ?? "push", "user-agent": "GitHub-Hookshot/agent-gateway" }),
    ...(await sign(body, secret, { scheme, ...(id && { id }), ...(signedUrl && { url: signedUrl }) })),
    ...headersOf(options.header),
  };
  const url = `${address.url}${address.webhookPath ?? "/hooks"}/${encodeURIComponent(mapping)}`;
  const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" }).catch(
    (error: Error) => {
      if (signal.aborted) throw error;
      throw new CliError(
        `No answer from ${address.url}.`,
        UNREACHABLE,
        "agent-gateway serve, or name another gateway: --url URL",
      );
    },
  );
  const isPlain = response.headers.get("content-length") === "0" || response.headers.get("content-type") === "text/xml";
  if (response.ok && isPlain) return withoutIds(response);
  const { isObject, jsonOf } = await import("#generated/clients/typescript/src/body.ts");
  const answer = await jsonOf(response).catch(() => undefined);
  if (response.ok) {
    if (isObject(answer) && ["string", "undefined"].includes(typeof answer.deliveryId))
      return isRepeat(response) ? { ...answer, message: REPEATED } : answer;
    throw notAReply(address.url);
  }
  const { detail, title } = (isObject(answer) ? answer : {}) as { detail?: unknown; title?: unknown };
  const location = response.headers.get("location");
  if (location !== null)
    throw new CliError(
      `${url} redirects to ${location}. Nothing was sent there.`,
      UNREACHABLE,
      "name the gateway's own address: --url URL",
    );
  const code =
    response.status === 401 || response.status === 403
      ? NOT_ALLOWED
      : response.status === 404
        ? NOT_FOUND
        : response.status === 429 || response.status === 503
          ? LIMITED
          : 1;
  throw new CliError(
    `${detail ?? title ?? "It was refused"} (HTTP ${response.status})`,
    code,
    "agent-gateway deliveries list --outcome refused",
  );
}

/** Twilio's messages and recordings have their ids in the form, which is signed. */
function refuseIdOfTwilio(form: string): void {
  const fields = new URLSearchParams(form);
  const place = ["MessageSid", "SmsSid", "RecordingSid"].find((name) => fields.has(name));
  if (place) throw new UsageError(`--id has no effect with --as twilio: ${place} of the payload is the id.`);
}

/** The result of a request whose answer has no ids. Its delivery is found by the id of the request. */
function withoutIds({ headers }: Pick<Response, "headers">): { message: string; requestId: string } {
  const message = isRepeat({ headers }) ? REPEATED : "accepted, and answered without ids";
  return { message, requestId: headers.get("x-request-id") ?? "" };
}

/** In place of the first answer, which a repeat gets again. */
export const REPEATED = "repeated: a request with this id was received before, and nothing was started";

function isRepeat({ headers }: Pick<Response, "headers">): boolean {
  return headers.get("idempotent-replayed") === "true";
}

/** A file as its sender would send it: a form, or JSON, which `asForm` puts into a form. */
function bodyOf({ text, name }: { text: string; name: string }, sender: Sender, asForm: boolean) {
  if (!/^\s*[[{]/.test(text)) {
    const form = text.trimEnd();
    const read = jsonOfForm(form);
    if ("flaw" in read || !form.includes("=")) throw new UsageError(`${name} is neither JSON nor a form.`);
    return { body: form, type: FORM };
  }
  const value = parseJson(text, name) as object;
  if (asForm) return { body: formOf(value, text), type: FORM };
  // Linear signs the time in the body, and an old one is refused.
  const isTimed = sender === "linear" && !Array.isArray(value);
  return {
    body: isTimed ? JSON.stringify({ ...value, webhookTimestamp: Date.now() }) : text,
    type: "application/json",
  };
}

/** JSON as a form: an object of texts has its values as fields, other JSON becomes the field `payload`. */
function formOf(value: object, text: string): string {
  const fields = Object.entries(value);
  const isFlat = !Array.isArray(value) && fields.every(([, field]) => typeof field === "string");
  return new URLSearchParams(isFlat ? fields : { [PAYLOAD]: text }).toString();
}
