import { type Command, Option } from "commander";
import type { Gateway } from "#generated/clients/typescript/src/index.ts";
import type { DryRunRequest, MappedPayload } from "#generated/clients/typescript/src/rest-types.ts";
import { mappedJsonOf } from "#kit/forms.ts";
import { calling } from "../calling.ts";
import { CliError, NOT_FOUND, UsageError } from "../failures.ts";
import { fields, printItem } from "../output.ts";
import type { Sender, SignedOptions } from "../signed-webhook.ts";
import { asTyped } from "../typed.ts";
import { headersOf, jsonOf, readFile } from "../values.ts";

const SENDERS: readonly Sender[] = ["github", "stripe", "slack", "linear", "twilio", "standard"];
type SendOptions = SignedOptions & { as?: Sender };

export function addHooks(program: Command): void {
  const hooks = program
    .command("hooks")
    .summary("webhooks: test the mappings, send payloads")
    .description("Inbound webhooks, and the mappings that turn them into turns.");

  calling<{ mapping?: string; header: string[] }>(
    hooks
      .command("test")
      .summary("try the mappings with a payload, without starting a turn")
      .argument("<payload>", "a file with JSON, - for standard input, or the id of a recorded request")
      .option("--mapping <name>", "try only this mapping, at its own address")
      .addOption(new Option("-H, --header <name: value...>", "headers of the request").default([], "none"))
      .addHelpText(
        "after",
        "\nThe exit code is 1 if no mapping matches.\n\nExamples:\n  agent-gateway hooks test push.json -H 'x-github-event: push'\n  agent-gateway hooks test dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
      ),
    async ({ gateway, options, signal }, payload = "") => {
      const given = /^dlv_[0-9A-Z]{20,}$/.test(payload)
        ? await recorded(await gateway.deliveries.get(payload, { signal }))
        : { text: readFile(payload === "-" ? "/dev/stdin" : payload), what: payload };
      const headers = { ...given.headers, ...headersOf(options.header) };
      const request: DryRunRequest = {
        ...given.by,
        headers,
        body: mappedBody(given, headers),
        ...(options.mapping && { name: options.mapping }),
      };
      const run = await gateway.mappings.dryRun(request, { signal });
      if (run.starts === null) process.exitCode = 1;
      const { dryRunWords } = await import("../dry-run.ts");
      printItem(options, run, run.starts ?? "", () => dryRunWords(run));
    },
  );

  calling<SendOptions>(
    hooks
      .command("send")
      .summary("send a payload, signed like that of a sender")
      .argument("<file>", "a file with JSON (with --as also a form), or - for standard input")
      .addOption(new Option("--as <sender>", "sign as this sender").choices(SENDERS))
      .option("--mapping <name>", "send to the address of this mapping (required with --as)")
      .option("--secret <secret>", "the secret to sign with")
      .option("--secret-env <name>", "the variable with the secret")
      .option("--event <name>", "GitHub's event, such as push")
      .option("--form", "send JSON as a form: a flat object as its fields, other JSON as the field payload")
      .option("--signed-url <url>", "the address that Twilio signs (default: verify.url of the mapping)")
      .option(
        "--id <id>",
        "the sender's id of the webhook, which a repeat has too (default: a new one). Slack and Stripe have it in the body",
      )
      .addOption(new Option("-H, --header <name: value...>", "more headers").default([], "none"))
      .addHelpText(
        "after",
        "\nWithout --as, the webhook token is sent.\n\nExamples:\n  agent-gateway hooks send push.json --as github --mapping github --secret-env GITHUB_SECRET --event push\n  agent-gateway hooks send command.form --as slack --mapping slack-command\n  agent-gateway hooks send alert.json",
      ),
    async ({ gateway, address, options, isRepeat, signal }, file = "") => {
      refuseUnused(options);
      const text = readFile(file === "-" ? "/dev/stdin" : file);
      if (options.as === undefined) {
        const request = {
          signal,
          headers: headersOf(options.header),
          ...(options.id && { idempotencyKey: options.id }),
        };
        const body = jsonOf(text, file) as MappedPayload;
        const { mapping } = options;
        const { REPEATED } = await import("../signed-webhook.ts");
        // Without an id of the caller, only the client itself has sent the request twice.
        const print = (sent: Sent): void =>
          printSent(options, options.id !== undefined && isRepeat() ? { ...sent, message: REPEATED } : sent);
        if (mapping === undefined) return print((await gateway.hooks.mapped(body, request)) as Sent);
        const sent = gateway.hooks.mappedByName(mapping, body, request).catch(async (error: unknown) => {
          throw (await noMapping(gateway, mapping, signal)) ?? error;
        });
        return print((await sent) as Sent);
      }
      const { sendSigned } = await import("../signed-webhook.ts");
      printSent(options, (await sendSigned({ address, options, signal }, options.as, { text, name: file })) as Sent);
    },
  );
}

/** Refuses an id that no header can have, and options that would have no effect. */
function refuseUnused({ as, id, form, event, signedUrl }: SendOptions): void {
  if (id !== undefined && !/^[!-~](?:[ -~]*[!-~])?$/.test(id))
    throw new UsageError(
      "--id must be printable characters of ASCII, without a space at an end: it is sent in a header.",
    );
  const given = { form, event, "signed-url": signedUrl };
  const unused = Object.entries(given).find(([, value]) => value !== undefined);
  if (as === undefined && unused) throw new UsageError(`--${unused[0]} needs --as: it is a part of a signed request.`);
  if (event !== undefined && as !== "github") throw new UsageError("--event is GitHub's: use it with --as github.");
}

/** The reason for a refused webhook, if the gateway has no such mapping. Only a key that may list the mappings gets it. */
async function noMapping(gateway: Gateway, mapping: string, signal: AbortSignal): Promise<CliError | undefined> {
  const mappings = await gateway.mappings.list({ signal, maxRetries: 0 }).catch(() => undefined);
  const names = mappings?.mappings.map(({ name }) => name);
  if (names === undefined || names.includes(mapping)) return undefined;
  const { listed } = await import("../signed-webhook.ts");
  return new CliError(`No mapping is named ${mapping}.${listed(names)}`, NOT_FOUND, "name one: --mapping NAME");
}

type Sent = {
  message?: string;
  deliveryId?: string;
  turnId?: string;
  mapping?: string;
  sessionId?: string;
  requestId?: string;
};

function printSent(options: { json?: boolean; quiet?: boolean }, sent: Sent): void {
  printItem(options, sent, sent.deliveryId ?? "", () => {
    const { message, deliveryId, turnId, mapping, sessionId, requestId } = sent;
    const command = deliveryId ? `show ${deliveryId}` : requestId && `list --id ${requestId}`;
    const next = command ? asTyped(`\nNext: agent-gateway deliveries ${command}`) : "";
    const ids = { session: sessionId, turn: turnId, delivery: deliveryId, request: requestId };
    return `${fields({ answer: message, mapping, ...ids })}${next}`;
  });
}

type Recorded = import("#generated/clients/typescript/src/rest-types.ts").Delivery;
/** A request to try: its body as it was sent, and the mapping of its path. */
type Given = { text: string; what: string; headers?: Record<string, string>; by?: { name?: string } };

/** A recorded request in the form of a dry run. */
async function recorded(delivery: Recorded): Promise<Given> {
  const { mappedBy } = await import("#console/lib/requests.ts");
  const { delivery_id, body, body_encoding, headers } = delivery;
  if (body === null || body_encoding === "base64")
    throw new UsageError(
      `The body of ${delivery_id} is not stored as JSON.`,
      "try it from a file: agent-gateway hooks test FILE",
    );
  return { text: body, what: "Its body", headers, by: mappedBy(delivery) ?? {} };
}

/** The body as mappings read it: JSON, or a form if a header says so. */
function mappedBody({ text, what }: Given, headers: Readonly<Record<string, string>>): MappedPayload {
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === "content-type")?.[1];
  const json = mappedJsonOf(type, text.trimEnd());
  if (json === undefined) throw new UsageError(`${what} is not a form.`);
  return jsonOf(json, what) as MappedPayload;
}
