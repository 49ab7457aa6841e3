import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf, query, setQuery } from "#console/app/router.ts";
import { useTitleNote } from "#console/app/title.ts";
import { copyText } from "#console/app/toasts.ts";
import { failureOf } from "#console/lib/failure.ts";
import { bytes, count, plural } from "#console/lib/format.ts";
import { jsonOf } from "#console/lib/requests.ts";
import type { Step } from "#console/lib/steps.ts";
import { AgentLink, CopyButton, Id, idFact } from "#console/parts/copy.tsx";
import { Body, type ValueAction } from "#console/parts/json.tsx";
import { Facts, InspectorHead, Missing } from "#console/parts/page.tsx";
import { Prose } from "#console/parts/prose.tsx";
import { ReplaySign, State } from "#console/parts/state.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Ago, Exact } from "#console/parts/time.tsx";
import { Timeline } from "#console/parts/timeline.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { ReplySign } from "#console/parts/work-row.tsx";
import type { Delivery, DeliverySummary } from "#generated/clients/typescript/src/rest.ts";
import { Actions } from "./actions.tsx";

const OPEN = new Set(["queued", "running"]);

type InspectorOf = {
  id: string;
  back: () => void;
  /** Its row in the list, if the list has it. */
  row: DeliverySummary | undefined;
};

/** One request: its content, its timeline, and its actions. */
export function Inspector({ id, back, row }: InspectorOf) {
  const loaded = useLoaded((signal) => rest().deliveries.get(id, { signal }), [id]);
  const delivery = loaded.value.value;
  // The list follows what happens: once its row has changed, the timeline has more steps.
  useEffect(() => {
    if (delivery && row && stateOf(row) !== stateOf(delivery)) void loaded.reload();
  }, [row && stateOf(row)]);
  const isOpen = delivery !== undefined && OPEN.has(delivery.outcome);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => !document.hidden && void loaded.reload(), 2_000);
    return () => clearInterval(timer);
  }, [isOpen]);
  if (!delivery)
    return (
      <Missing
        of={loaded}
        name="delivery-not-found"
        all="All requests"
        back={back}
        title="This request is no longer stored."
        id={id}
      >
        The flight recorder deletes the oldest requests first. <code>recorder.entries</code> and{" "}
        <code>recorder.bytes</code> in the configuration limit what is stored.
      </Missing>
    );
  return <Shown delivery={delivery} back={back} isOpen={isOpen} reload={() => void loaded.reload()} />;
}

function stateOf({ outcome, announcement }: Pick<Delivery, "outcome" | "announcement">): string {
  return [outcome, announcement?.state, announcement?.reason].join(" ");
}

type ShownOf = Pick<InspectorOf, "back"> & { delivery: Delivery; isOpen: boolean; reload: () => void };

function Shown({ delivery, back, isOpen, reload }: ShownOf) {
  const steps = delivery.timeline as Step[];
  const { preview, operation, path, announcement } = delivery;
  useTitleNote((preview || operation || path).slice(0, 60));
  return (
    <article aria-label={`Request ${delivery.delivery_id}`}>
      <InspectorHead all="All requests" back={back}>
        <div class="line">
          <State of={delivery.outcome} />
          {delivery.status !== null && <span class="mono">{delivery.status}</span>}
          {delivery.method !== "" && <span class="mono">{delivery.method}</span>}
          {delivery.surface === "schedule" ? <ScheduleLink of={delivery} /> : <span class="mono break">{path}</span>}
          {announcement && <ReplySign {...announcement} isWhole />}
        </div>
        {preview && <p class="said">{preview}</p>}
        <div class="line">
          <Id id={delivery.delivery_id} most={40} />
          <span class="faint">
            <Ago at={delivery.at} />
          </span>
          {delivery.replay_of && <ReplayLink word="replay of" id={delivery.replay_of} />}
          <GroupLinks steps={steps} turn={delivery.turn_id} />
          {steps.map(({ name, detail }) =>
            name === "request.sent-again" ? (
              <ReplayLink key={detail?.delivery_id} word="replayed as" id={String(detail?.delivery_id)} />
            ) : null,
          )}
        </div>
        <Actions delivery={delivery} changed={reload} />
      </InspectorHead>
      <FailureNote steps={steps} agent={delivery.agent} />
      <Tabs
        label="Parts of the request"
        open={query.value.get("tab") ?? "timeline"}
        onOpen={(tab) => setQuery({ tab: tab === "timeline" ? "" : tab })}
        tabs={[
          { id: "timeline", name: "Timeline", body: () => <Timeline steps={steps} isOpen={isOpen} /> },
          { id: "request", name: "Request", body: () => <RequestTab delivery={delivery} /> },
        ]}
      />
    </article>
  );
}

function ReplayLink({ word, id }: { word: string; id: string }) {
  return (
    <span>
      <ReplaySign>{word}</ReplaySign>{" "}
      <a class="mono" href={hrefOf(`/d/${id}`)}>
        {id}
      </a>
    </span>
  );
}

/** From a request that joined a group to the first one of the group, and from there to all requests of the turn. */
function GroupLinks({ steps, turn }: { steps: readonly Step[]; turn: string | null }) {
  const first = steps.find(({ name }) => name === "request.coalesced")?.detail?.delivery_id;
  const joined = steps.filter(({ name }) => name === "group.joined").length;
  if (first !== undefined)
    return (
      <span>
        joined{" "}
        <a class="mono" href={hrefOf(`/d/${first}`)}>
          {String(first)}
        </a>
      </span>
    );
  return joined > 0 && turn !== null ? (
    <a href={hrefOf(`/activity?id=${turn}`)}>joined by {plural(joined, "request")}</a>
  ) : null;
}

function monoFact(name: string, text: string) {
  return [name, <span class="mono">{text}</span>] as const;
}

function RequestTab({ delivery }: { delivery: Delivery }) {
  const { agent, tokens } = delivery;
  return (
    <div class="section">
      <Facts
        of={[
          [delivery.surface === "schedule" ? "At" : "Received", <Exact at={delivery.at} />],
          ...(delivery.surface === "schedule" ? scheduleFacts(delivery) : senderFacts(delivery)),
          monoFact("Operation", delivery.operation || "none"),
          idFact("Request ID", delivery.request_id),
          idFact("Sender's ID", delivery.sender_id),
          agent !== null && ["Agent", <AgentLink name={agent} />],
          idFact("Session", delivery.session_id, "s"),
          idFact("Turn", delivery.turn_id, "t"),
          idFact("Event", delivery.event_id, "e"),
          tokens !== null && ["Tokens", count(tokens)],
        ]}
      />
      {delivery.surface !== "schedule" && <Content delivery={delivery} />}
    </div>
  );
}

/** The body and the headers of a request. */
function Content({ delivery }: { delivery: Delivery }) {
  const { headers, body } = delivery;
  return (
    <>
      <section class="section">
        <h3>Body</h3>
        {body === null ? (
          <p class="muted">{delivery.bytes === 0 ? "No body." : `${bytes(delivery.bytes)}, not stored.`}</p>
        ) : delivery.body_encoding === "base64" ? (
          <>
            <p class="muted">Not UTF-8: shown in base64.</p>
            <pre class="raw">{body}</pre>
          </>
        ) : (
          <Body
            text={body}
            json={jsonOf(delivery)}
            what="the body"
            actions={delivery.surface === "hooks" ? copiesOf : undefined}
          />
        )}
      </section>
      <section class="section">
        <header>
          <h3>Headers</h3>
          <CopyButton text={() => JSON.stringify(headers, null, 2)} what="Copy the headers" />
        </header>
        <Facts of={Object.entries(headers).map(([name, value]) => monoFact(name, value))} />
        <p class="hint">Tokens, cookies and signatures are never stored.</p>
      </section>
    </>
  );
}

function senderFacts({ address, caller }: Delivery) {
  return [monoFact("From", address), ["Caller", caller ?? <span class="faint">not authenticated</span>] as const];
}

/** No request arrived for a run of a schedule. */
function scheduleFacts(delivery: Delivery) {
  return [["Schedule", <ScheduleLink of={delivery} />] as const];
}

/** The caller of a run is its schedule. */
function ScheduleLink({ of: { caller, path } }: { of: Delivery }) {
  return (
    <a class="mono break" href={hrefOf(`/schedules/${encodeURIComponent(caller ?? "")}`)}>
      {path}
    </a>
  );
}

/** The ways to copy a value of a payload: unchanged, as a template of a message, and as a line of `match`. */
function copiesOf(path: (string | number)[], value: unknown): ValueAction[] {
  const place = ["body", ...path].join(".");
  const copy = (word: string, text: string) => ({ word, run: () => void copyText(text, "Copied") });
  return [
    copy("Copy the value", typeof value === "string" ? value : JSON.stringify(value)),
    copy(`Copy {${place}}`, `{${place}}`),
    copy("Copy the match line", `${JSON.stringify(place)}: ${JSON.stringify(value)}`),
  ];
}

/** Why a request was refused, failed or was skipped. Shows nothing for any other request. */
function FailureNote({ steps, agent }: { steps: readonly Step[]; agent: string | null }) {
  const failure = failureOf(steps, agent);
  if (!failure) return null;
  const { cause, error, detail, advice, isExpected } = failure;
  return (
    <Note tone={isExpected ? "warning" : "bad"}>
      <strong>{cause}</strong> {error && <span class="mono muted">{error}</span>}
      {detail && (
        <p>
          <Prose text={detail} />
        </p>
      )}
      {advice && (
        <p class="muted">
          <Prose text={advice} />
        </p>
      )}
    </Note>
  );
}
