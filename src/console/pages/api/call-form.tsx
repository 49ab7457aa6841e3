import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "#console/app/keys.ts";
import { type RawRequest, useExchange } from "#console/app/raw-exchange.ts";
import { identity } from "#console/app/session.ts";
import { copyText } from "#console/app/toasts.ts";
import {
  type ApiCall,
  type ApiRequest,
  effectOfCall,
  isRemoving,
  requestOf,
  whyNotCallable,
} from "#console/lib/api-calls.ts";
import { curlOf, type SecretVariable } from "#console/lib/curl.ts";
import { CodeField } from "#console/parts/code-field.tsx";
import { Confirm } from "#console/parts/dialog.tsx";
import { Exchange } from "#console/parts/exchange.tsx";
import { ActionButton, Field, Select } from "#console/parts/fields.tsx";
import { Markdown } from "#console/parts/markdown.tsx";
import { InspectorHead } from "#console/parts/page.tsx";
import { ParamField } from "#console/parts/param-field.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";

/** One call: its form, filled with the example of the spec, and the raw exchange. */
export function CallForm({ call, back }: { call: ApiCall; back: () => void }) {
  const values = useSignal<Record<string, string>>({});
  const body = useSignal(call.bodies[0]?.text ?? "");
  const isAsking = useSignal(false);
  const { exchange, error, isRunning, send, stop } = useExchange();
  const who = identity.value;
  const denied = who ? whyNotCallable(call, who) : "Sign in first.";
  const made = requestOf(call, values.value, body.value);
  const why = denied ?? ("missing" in made ? `Fill in ${made.missing} first.` : undefined);
  const effect = effectOfCall(call);
  const run = async () => {
    if ("missing" in made || !who) return;
    await send(rawOf(call, made, who.token));
  };
  const ask = () => {
    if (why !== undefined || isRunning.value) return;
    if (effect === undefined) void run();
    else isAsking.value = true;
  };
  const copy = () => {
    const { path, headers } = "missing" in made ? { path: call.path, headers: {} } : made;
    const sent = call.bodies.length > 0 ? body.value : undefined;
    void copyText(
      curlOf({ method: call.method, origin: location.origin, path, secret: secretOf(call), headers, body: sent }),
      "Copied as curl",
    );
  };
  const answer = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (exchange.value) answer.current?.scrollIntoView({ block: "nearest" });
  }, [exchange.value === undefined]);
  useKeys([{ key: "c", does: "Copy as curl", run: copy }]);
  return (
    <article aria-label={call.id}>
      <InspectorHead all="All calls" back={back}>
        <div class="line">
          <strong class="mono">{call.id}</strong>
          <span class="faint">{call.summary}</span>
        </div>
        <div class="line mono">
          <Method of={call} /> <span class="break">{call.path}</span>
        </div>
      </InspectorHead>
      <details class="about fold">
        <summary>Description</summary>
        <Markdown text={call.description || call.summary} />
      </details>
      {denied !== undefined && <Note tone="warning">{denied}</Note>}
      <form
        class="section fill"
        onSubmit={(event) => {
          event.preventDefault();
          ask();
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          ask();
        }}
      >
        {call.params.length > 0 && (
          <div class="api-params">
            {call.params.map((param) => (
              <ParamField
                key={`${param.in} ${param.name}`}
                field={param}
                error={undefined}
                value={values.value[param.name] ?? ""}
                set={(value) => {
                  values.value = { ...values.value, [param.name]: value };
                }}
              />
            ))}
          </div>
        )}
        {call.bodies.length > 0 && <BodyField call={call} body={body.value} set={(text) => (body.value = text)} />}
        <div class="actions bar-actions">
          <ActionButton icon="send" kind="primary" onClick={ask} why={why} isRunning={isRunning.value}>
            {isRunning.value ? "Sending…" : "Send"}
          </ActionButton>
          {isRunning.value && <ActionButton onClick={stop}>Stop</ActionButton>}
          <ActionButton icon="terminal" onClick={copy} hotkey="c">
            curl
          </ActionButton>
        </div>
      </form>
      <Failed of={{ error }} repeat={ask} />
      <div ref={answer}>{exchange.value && <Exchange of={exchange.value} isWhole />}</div>
      {isAsking.value && effect !== undefined && (
        <Confirm
          title={`Send ${call.id}?`}
          act="Send"
          isDanger={isRemoving(call)}
          run={async () => void run()}
          close={() => (isAsking.value = false)}
        >
          <p>
            {call.summary}. {effect}
          </p>
          {!("missing" in made) && (
            <pre class="raw step-text">
              {made.method} {made.path}
              {made.body !== undefined && `\n${made.body}`}
            </pre>
          )}
        </Confirm>
      )}
    </article>
  );
}

/** The method, marked if the call is not a GET. */
export function Method({ of: { method } }: { of: Pick<ApiCall, "method"> }) {
  return (
    <span class="method" data-method={method}>
      {method}
    </span>
  );
}

/** The variable of the token for a call. */
function secretOf({ identities, surface }: ApiCall): SecretVariable | undefined {
  if (identities.length === 0) return undefined;
  if (identities.includes("signInCode")) return "SIGN_IN_CODE";
  if (surface === "rpc" || identities.includes("rpcToken")) return "RPC_TOKEN";
  return identities.includes("webhookBearer") ? "WEBHOOK_TOKEN" : "REST_API_KEY";
}

/** The request with the token that is signed in, and the same with the token's variable in its place. */
function rawOf(call: ApiCall, { method, path, headers, body }: ApiRequest, token: string): RawRequest {
  const secret = secretOf(call);
  return {
    method,
    path,
    body,
    headers: secret === undefined ? headers : { authorization: `Bearer ${token}`, ...headers },
    shownHeaders: secret === undefined ? headers : { authorization: `Bearer $${secret}`, ...headers },
  };
}

function BodyField({ call, body, set }: { call: ApiCall; body: string; set: (text: string) => void }) {
  return (
    <>
      {call.bodies.length > 1 && (
        <Field word="Example">
          <Select
            value={String(call.bodies.findIndex(({ text }) => text === body))}
            choices={[["-1", "Custom"], ...call.bodies.map(({ name }, n) => [String(n), name] as const)]}
            choose={(n) => set(call.bodies[Number(n)]?.text ?? body)}
          />
        </Field>
      )}
      <CodeField
        word="Body"
        hint={isJson(body) ? undefined : "Not JSON: the gateway will refuse this body."}
        rows={Math.min(18, Math.max(4, body.split("\n").length))}
        value={body}
        set={set}
      />
    </>
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
