import { go, hrefOf, setQuery } from "#console/app/router.ts";
import { burstsOf } from "#console/lib/bursts.ts";
import { curlOfHook } from "#console/lib/webhook-requests.ts";
import { AgentLink, Command, CopyButton } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Facts, InspectorHead, Pending } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { exampleFor, type HookAddress, type Requests, secretWords, variableOf } from "./addresses.ts";

type Shown = { address: HookAddress; requests: Requests; back: () => void };

/** One address: how to send to it, and its last requests. */
export function AddressView({ address, requests, back }: Shown) {
  const { kind, key, name, path, verify, does, rule } = address;
  const example = useLoaded((signal) => exampleFor(address, signal), [key]);
  const url = location.origin + path;
  const { headers = {}, body = {} } = example.value.value ?? {};
  return (
    <article aria-label={name}>
      <InspectorHead all="All addresses" back={back}>
        <div class="line">
          <strong>{name}</strong>
          <span class="faint">{kind === "mapping" ? "mapping" : "webhook"}</span>
        </div>
        <div class="line">
          <span class="id">
            <span class="mono break">{url}</span>
            <CopyButton text={url} what="Copy the address" />
          </span>
        </div>
        <div class="actions bar-actions bottom-bar">
          <ActionButton icon="send" onClick={() => setQuery({ send: key })}>
            Send a test
          </ActionButton>
          {kind === "mapping" && (
            <ActionButton icon="play" onClick={() => go(`/webhooks?tab=try&target=${encodeURIComponent(key)}`)}>
              Try a payload
            </ActionButton>
          )}
        </div>
      </InspectorHead>
      <Facts
        of={[
          [kind === "mapping" ? "Matches" : "Effect", <span class={kind === "mapping" ? "mono" : ""}>{does}</span>],
          ["Authentication", secretWords(address)],
          rule && ["Message", <span class="mono">{rule.message}</span>],
          rule && ["Agent", <AgentLink name={rule.agent} />],
          rule && [
            "Session",
            rule.session === null ? "a new session each time" : <span class="mono">{rule.session}</span>,
          ],
          rule?.coalesce != null && ["Burst key", <span class="mono">{rule.coalesce.key}</span>],
          rule?.coalesce != null && ["Bursts", burstsOf(rule.coalesce)],
          rule?.model != null && ["Model", rule.model],
          rule?.announce_to != null && ["Reply channel", rule.announce_to],
          rule?.to != null && ["Reply to", <span class="mono">{rule.to}</span>],
          rule?.thread != null && ["Reply thread", <span class="mono">{rule.thread}</span>],
          kind === "shared" && [
            "Accepts",
            "Requests for mappings without a signature. Signed mappings only accept requests at their own address.",
          ],
        ]}
      />
      <section class="section spaced">
        <h2>Send with curl</h2>
        <Pending of={example} rows={3} />
        {example.value.value && (
          <Command
            text={curlOfHook({
              origin: location.origin,
              path,
              verify,
              verifyUrl: rule?.verify_url,
              headers,
              body: JSON.stringify(body),
            })}
          />
        )}
        <p class="hint">
          The command reads the {verify === null ? "token" : "secret"} from <code>{variableOf(address)}</code>
          {verify !== null && " and signs the body with openssl"}.
        </p>
      </section>
      <Recent of={address} requests={requests} />
    </article>
  );
}

const SHOWN = 5;

/** The last requests of an address. */
function Recent({ of, requests }: { of: HookAddress; requests: Requests }) {
  const query = of.kind === "mapping" ? `mapping=${encodeURIComponent(of.name)}` : "surface=hooks";
  return (
    <section class="section">
      <header>
        <h2>Last requests</h2>
        <div class="actions">
          <a href={hrefOf(`/activity?${query}`)}>All in Activity</a>
        </div>
      </header>
      {requests.length === 0 && <p class="muted">No requests among the newest 100 webhooks.</p>}
      <ul class="recent">
        {requests.slice(0, SHOWN).map(({ delivery_id, outcome, preview, at }) => (
          <li key={delivery_id} class="line">
            <State of={outcome} quiet />
            <a dir="auto" href={hrefOf(`/d/${delivery_id}`)}>
              {preview ?? delivery_id}
            </a>
            <span class="faint when">
              <Ago at={at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
