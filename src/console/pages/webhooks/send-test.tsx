import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { type RawExchange, useExchange } from "#console/app/raw-exchange.ts";
import { hrefOf, setQuery } from "#console/app/router.ts";
import { headersOfLines, linesOfHeaders, payloadOf, withTime } from "#console/lib/webhook-requests.ts";
import { RequestFields } from "#console/parts/code-field.tsx";
import { Dialog } from "#console/parts/dialog.tsx";
import { Exchange } from "#console/parts/exchange.tsx";
import { ActionButton, Field, Select } from "#console/parts/fields.tsx";
import { Failed } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { sign } from "#generated/clients/typescript/src/webhooks.ts";
import { exampleFor, type HookAddress, SIGNED_AS, variableOf } from "./addresses.ts";

type Of = { addresses: readonly HookAddress[]; address: HookAddress; close: () => void };

/** Sends a webhook from the browser, with the shared token or a signature. */
export function SendTest({ addresses, address, close }: Of) {
  const { kind, path, verify } = address;
  const payload = useSignal("");
  const headers = useSignal("");
  // Stored nowhere, and lost when the dialog is closed.
  const secret = useSignal("");
  const example = useLoaded((signal) => exampleFor(address, signal), [address.key]);
  useEffect(() => {
    const { value } = example.value;
    if (!value) return;
    payload.value = JSON.stringify(value.body, null, 2);
    headers.value = linesOfHeaders(value.headers);
  }, [example.value.value]);
  const { exchange, error, isRunning, send } = useExchange();
  const [parsed, head] = [payloadOf(payload.value), headersOfLines(headers.value)];
  const why = whyNot({ verify, secret: secret.value, isReadable: !("fault" in parsed) && !("fault" in head) });
  const run = async () => {
    if ("fault" in head || why !== undefined) return;
    const body = withTime(verify, payload.value.trim() === "" ? "{}" : payload.value);
    const proof = await proofOf(address, secret.value, body);
    const rest = { "content-type": "application/json", ...head.headers };
    const shown = verify === null ? { authorization: `Bearer ${variableOf(address)}` } : proof;
    await send({ method: "POST", path, body, headers: { ...rest, ...proof }, shownHeaders: { ...rest, ...shown } });
  };
  return (
    <Dialog title="Send a test webhook" close={close} size="wide">
      <form
        class="stack fill"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <Field word="Send to" hint={effectOf(address)}>
          <Select
            value={address.key}
            choices={addresses.map(({ key, name, path: to }) => [key, `${name} (${to})`])}
            choose={(key) => setQuery({ send: key })}
          />
        </Field>
        <Field
          word={verify === null ? "Webhook token" : `${SIGNED_AS[verify]} secret`}
          hint={`${verify === null ? "webhooks.token" : `webhooks.mappings.${address.name}.verify.secret`} of the configuration. Used only for this request, and not stored.`}
        >
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={secret.value}
            onInput={({ currentTarget }) => (secret.value = currentTarget.value)}
          />
        </Field>
        <RequestFields payload={payload} headers={kind === "wake" || kind === "agent" ? undefined : headers} rows={7} />
        <div class="actions dialog-actions">
          <button type="button" class="button" onClick={close}>
            Close
          </button>
          <ActionButton icon="send" kind="primary" onClick={() => void run()} why={why} isRunning={isRunning.value}>
            {isRunning.value ? "Sending…" : verify === null ? "Send" : "Sign and send"}
          </ActionButton>
        </div>
      </form>
      <Failed of={{ error }} />
      {exchange.value && !exchange.value.isOpen && <Sent exchange={exchange.value} />}
    </Dialog>
  );
}

function effectOf({ kind, name }: HookAddress): string {
  if (kind === "wake") return "Queues a real system event.";
  if (kind === "agent") return "Starts a real turn.";
  return kind === "shared" ? "Starts a real turn, if a mapping matches." : `Starts a real turn, if ${name} matches.`;
}

type SignedTest = { verify: HookAddress["verify"]; secret: string; isReadable: boolean };
function whyNot({ verify, secret, isReadable }: SignedTest): string | undefined {
  if (!isReadable) return "The payload or the headers are invalid.";
  if (secret === "") return verify === null ? "Enter the webhook token." : "Enter the secret.";
  if (verify !== null && !globalThis.isSecureContext)
    return "The browser can only sign on HTTPS or localhost. Use the curl command.";
  return undefined;
}

/** The headers that authenticate the sender. */
async function proofOf(
  { verify, path, rule }: HookAddress,
  secret: string,
  body: string,
): Promise<Record<string, string>> {
  if (verify === null) return { authorization: `Bearer ${secret}` };
  return await sign(body, secret, { scheme: verify, url: rule?.verify_url ?? location.origin + path });
}

/** The answer, with a link to the recorded request. */
function Sent({ exchange }: { exchange: RawExchange }) {
  const requestId = exchange.headers.find(([name]) => name === "x-request-id")?.[1];
  const found = useLoaded(
    async (signal) =>
      requestId === undefined ? undefined : (await rest().deliveries.list({ id: requestId }, { signal })).deliveries[0],
    [requestId],
  );
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => top.current?.scrollIntoView({ block: "nearest" }), []);
  return (
    <div class="stack" ref={top}>
      {found.value.value ? (
        <p>
          Recorded as{" "}
          <a class="mono" href={hrefOf(`/d/${found.value.value.delivery_id}`)}>
            {found.value.value.delivery_id}
          </a>
          .
        </p>
      ) : (
        <p class="muted">{found.isLoading.value ? "Loading the recorded request…" : "The request was not recorded."}</p>
      )}
      <Exchange of={exchange} />
    </div>
  );
}
