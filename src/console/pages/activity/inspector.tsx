import { useEffect } from "preact/hooks";
import { rest, troubleOf } from "#console/app/api.ts";
import { hrefOf, query, setQuery } from "#console/app/router.ts";
import { useTitleNote } from "#console/app/title.ts";
import { copyText } from "#console/app/toasts.ts";
import { bytes } from "#console/lib/format.ts";
import type { Step } from "#console/lib/steps.ts";
import { CopyButton, Id } from "#console/parts/copy.tsx";
import { FailureNote } from "#console/parts/failure-note.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Body, RawJson } from "#console/parts/json.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { ReplaySign, State } from "#console/parts/state.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Ago, Exact } from "#console/parts/time.tsx";
import { Timeline } from "#console/parts/timeline.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { ReplySign } from "#console/parts/work-row.tsx";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { Actions } from "./actions.tsx";

export type Row = Omit<Delivery, "headers" | "body" | "body_encoding" | "replayable" | "timeline">;

const OPEN = new Set(["queued", "running"]);

type InspectorOf = {
  id: string;
  back: () => void;
  /** Its row in the list, where the list has it. */
  row: Row | undefined;
};

/** One request: what came in, what the gateway made of it, and how to do it again. */
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
  if (loaded.error.value !== undefined && !delivery)
    return <Gone id={id} error={loaded.error.value} back={back} retry={loaded.reload} />;
  if (!delivery) return <Skeleton rows={10} />;
  return <Shown delivery={delivery} back={back} isOpen={isOpen} reload={() => void loaded.reload()} />;
}

function stateOf({ outcome, announcement }: Row): string {
  return [outcome, announcement?.state, announcement?.reason].join(" ");
}

function Gone({ id, error, back, retry }: { id: string; error: unknown; back: () => void; retry: () => void }) {
  return troubleOf(error).name === "delivery-not-found" ? (
    <>
      <BackLink back={back} />
      <Note tone="warning">
        <strong>This request is no longer stored.</strong>
        <p class="mono">{id}</p>
        <p>
          The flight recorder erases the oldest requests first. <code>recorder.entries</code> and{" "}
          <code>recorder.bytes</code> in the configuration are its limits.
        </p>
      </Note>
    </>
  ) : (
    <TroubleNote error={error} retry={retry} />
  );
}

function BackLink({ back }: { back: () => void }) {
  return (
    <button type="button" class="link back" onClick={back}>
      <Icon name="arrow-left" size={14} /> All requests
    </button>
  );
}

type ShownOf = Pick<InspectorOf, "back"> & { delivery: Delivery; isOpen: boolean; reload: () => void };

function Shown({ delivery, back, isOpen, reload }: ShownOf) {
  const steps = delivery.timeline as Step[];
  const attempts = steps.filter(({ name }) => name === "turn.started").length;
  const { preview, operation, path, announcement } = delivery;
  useTitleNote((preview || operation || path).slice(0, 60));
  return (
    <article aria-label={`Request ${delivery.delivery_id}`}>
      <header class="inspector-head">
        <BackLink back={back} />
        <div class="line">
          <State of={delivery.outcome} />
          {delivery.status !== null && <span class="mono">{delivery.status}</span>}
          <span class="mono">{delivery.method}</span>
          <span class="mono break">{path}</span>
          {announcement && <ReplySign {...announcement} isWhole />}
        </div>
        {preview && <p class="said">{preview}</p>}
        <div class="line">
          <Id id={delivery.delivery_id} most={40} />
          <span class="faint">
            <Ago at={delivery.at} />
          </span>
          {delivery.replay_of && <ReplayLink word="replay of" id={delivery.replay_of} />}
          {steps.map(({ name, detail }) =>
            name === "request.sent-again" ? (
              <ReplayLink key={detail?.delivery_id} word="replayed as" id={String(detail?.delivery_id)} />
            ) : null,
          )}
        </div>
        <Actions delivery={delivery} changed={reload} />
      </header>
      <FailureNote steps={steps} agent={delivery.agent} />
      <Tabs
        label="Parts of the request"
        open={query.value.get("tab") ?? "timeline"}
        onOpen={(tab) => setQuery({ tab: tab === "timeline" ? "" : tab })}
        tabs={[
          { id: "timeline", name: "Timeline", body: () => <Timeline steps={steps} isOpen={isOpen} /> },
          { id: "request", name: "Request", body: () => <RequestTab delivery={delivery} /> },
          { id: "reply", name: "Reply", body: () => <ReplyTab delivery={delivery} steps={steps} /> },
          { id: "attempts", name: "Attempts", count: attempts, body: () => <AttemptsTab steps={steps} /> },
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

function RequestTab({ delivery }: { delivery: Delivery }) {
  const { headers, body, body_encoding } = delivery;
  return (
    <div class="section">
      <Facts
        of={[
          ["Came", <Exact key="at" at={delivery.at} />],
          [
            "From",
            <span key="from" class="mono">
              {delivery.address}
            </span>,
          ],
          ["Caller", delivery.caller ?? <span class="faint">nobody was authenticated</span>],
          ["Request", <Id key="req" id={delivery.request_id} most={40} />],
          delivery.sender_id !== null && ["Sender's id", <Id key="sender" id={delivery.sender_id} most={40} />],
          [
            "Operation",
            <span key="op" class="mono">
              {delivery.operation || "none"}
            </span>,
          ],
        ]}
      />
      <section class="section">
        <h3>Body</h3>
        {body === null ? (
          <p class="muted">
            {delivery.bytes === 0 ? "It had no body." : `It had ${bytes(delivery.bytes)}, which are not kept.`}
          </p>
        ) : body_encoding === "base64" ? (
          <>
            <p class="muted">It is no UTF-8, so it is shown in base64.</p>
            <pre class="raw">{body}</pre>
          </>
        ) : (
          <Body text={body} what="the body" {...(delivery.surface === "hooks" && { pick: copyPlace })} />
        )}
      </section>
      <section class="section">
        <header>
          <h3>Headers</h3>
          <CopyButton text={() => JSON.stringify(headers, null, 2)} what="Copy the headers" />
        </header>
        <Facts
          of={Object.entries(headers).map(
            ([name, value]) =>
              [
                name,
                <span key={name} class="mono">
                  {value}
                </span>,
              ] as const,
          )}
        />
        <p class="hint">Tokens, cookies and signatures are never kept.</p>
      </section>
    </div>
  );
}

/** A place in a payload, copied as a template has it; the toast says how `match` has it. */
function copyPlace(path: (string | number)[], value: unknown) {
  const place = `{${["body", ...path].join(".")}}`;
  void copyText(place, `Copied ${place}. As a match line: "${["body", ...path].join(".")}": ${JSON.stringify(value)}`);
}

function ReplyTab({ delivery, steps }: { delivery: Delivery; steps: readonly Step[] }) {
  const end = steps.findLast(({ name }) => ["turn.completed", "turn.failed", "turn.cancelled"].includes(name));
  const { reply, usage } = (end?.detail ?? {}) as {
    reply?: string;
    usage?: { input: number; output: number; total: number };
  };
  return (
    <div class="section">
      <Facts
        of={[
          [
            "Answered",
            delivery.status === null ? "after this was recorded" : <span class="mono">{delivery.status}</span>,
          ],
          delivery.turn_id !== null && [
            "Turn",
            <Id key="turn" id={delivery.turn_id} href={hrefOf(`/t/${delivery.turn_id}`)} most={40} />,
          ],
          delivery.event_id !== null && [
            "Event",
            <Id key="event" id={delivery.event_id} href={hrefOf(`/e/${delivery.event_id}`)} most={40} />,
          ],
          delivery.agent !== null && [
            "Agent",
            <a key="agent" href={hrefOf(`/agents/${encodeURIComponent(delivery.agent)}`)}>
              {delivery.agent}
            </a>,
          ],
          delivery.session_id !== null && [
            "Session",
            <Id
              key="session"
              id={delivery.session_id}
              href={hrefOf(`/s/${encodeURIComponent(delivery.session_id)}`)}
              most={40}
            />,
          ],
          usage && ["Tokens", `${usage.input} in, ${usage.output} out`],
        ]}
      />
      {reply !== undefined ? (
        <pre class="raw">{reply}</pre>
      ) : (
        <p class="muted">There is no reply{OPEN.has(delivery.outcome) ? " yet" : ""}.</p>
      )}
    </div>
  );
}

function AttemptsTab({ steps }: { steps: readonly Step[] }) {
  const from = steps.findIndex(({ name }) => name === "turn.started");
  if (from < 0) return <p class="muted">No turn has run for it.</p>;
  return (
    <div class="section">
      <Timeline
        steps={steps.slice(from).filter(({ name }) => /^(turn|tool|model|usage)\./.test(name))}
        isOpen={false}
      />
      <RawJson value={steps} word="All steps as JSON" />
    </div>
  );
}
