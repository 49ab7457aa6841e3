import { type Signal, useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import {
  blockOf,
  type Draft,
  EMPTY_DRAFT,
  mappingOf,
  placeOf,
  storeDraft,
  storedDraft,
  textOf,
  whyNoMatch,
  whyNoMessage,
  whyUnreachable,
  withKey,
  withMatch,
  withMessage,
  withSession,
} from "#console/lib/mapping-draft.ts";
import { tabStorage } from "#console/lib/storage.ts";
import { headersOfLines, payloadOf } from "#console/lib/webhook-requests.ts";
import { CodeField } from "#console/parts/code-field.tsx";
import { Command } from "#console/parts/copy.tsx";
import { ActionButton, Field, Select } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { ActionTree, type ValueAction } from "#console/parts/json.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Misses, TrialResult, usePaused, useTrial } from "#console/parts/trial.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Backtest } from "#generated/clients/typescript/src/rest.ts";

type DraftStore = { draft: Signal<Draft>; change: (next: Draft) => void };

/** The draft of this tab. */
export function useDraft(): DraftStore {
  const draft = useSignal(storedDraft(tabStorage));
  return {
    draft,
    change(next) {
      draft.value = next;
      storeDraft(next, tabStorage);
    },
  };
}

type Of = { draft: DraftStore; headers: string; payload: string };

/** The request as a tree: each value can be written into the draft. */
export function PickValues({ draft: { draft, change }, headers, payload }: Of) {
  const done = useSignal("");
  const [head, read] = [headersOfLines(headers), payloadOf(payload)];
  if ("fault" in head) return <Note tone="warning">{head.fault}</Note>;
  if ("fault" in read) return <Note tone="warning">{read.fault}</Note>;
  const actions = (path: (string | number)[], value: unknown): ValueAction[] => {
    const place = placeOf(path);
    const why = whyUnreachable(path, value);
    const act = (word: string, next: (text: string) => Draft, whyNot?: string): ValueAction => ({
      word,
      why: why ?? whyNot,
      run: () => {
        change(next(textOf(value)));
        done.value = `${word}: ${place}`;
      },
    });
    return [
      act("Match this value", (text) => withMatch(draft.peek(), place, text), whyNoMatch(path, value)),
      act("Use in the message", () => withMessage(draft.peek(), place), whyNoMessage(path)),
      act("Session for each value", () => withSession(draft.peek(), place), whyNoMessage(path)),
      act("One turn for a burst", () => withKey(draft.peek(), place), whyNoMessage(path)),
    ];
  };
  return (
    <>
      <p class="hint">Click a value to use it in the mapping.</p>
      <ActionTree value={{ body: read.body, headers: head.headers }} what="the request" actions={actions} />
      <p class="sr-only" role="status">
        {done}
      </p>
    </>
  );
}

/** How long nothing changes before the recorded webhooks are tried. */
const BACKTEST_PAUSE_MS = 1_000;

/** The draft as a form, its result for the payload and for the recorded webhooks, and its text for the configuration. */
export function Builder({ draft: { draft, change }, headers, payload }: Of) {
  const mapping = mappingOf(draft.value);
  const isReady = mapping.message !== "";
  const trial = useTrial(isReady && payload.trim() !== "" ? { headers, payload, mapping } : undefined);
  const backtest = usePaused(
    isReady ? (signal) => rest().mappings.backtest({ mapping }, { signal }) : undefined,
    [JSON.stringify(mapping)],
    BACKTEST_PAUSE_MS,
  );
  const error = backtest.error ?? trial.error;
  return (
    <>
      <DraftForm draft={draft.value} change={change} />
      {!isReady ? (
        <p class="muted">Write a message, or pick a value for it.</p>
      ) : error !== undefined ? (
        <TroubleNote error={error} />
      ) : (
        <>
          {payload.trim() !== "" && trial.result && <TrialResult trial={trial} />}
          {backtest.result && <Backtested of={backtest.result} isStale={backtest.isStale} />}
          <Block draft={draft.value} />
        </>
      )}
    </>
  );
}

const REPLIES = [
  ["", "Do not send to a channel"],
  ["announce", "Send to the channel"],
] as const;

const TAKES = [
  ["", "Of the last request"],
  ["all", "Of all requests, in order"],
] as const;

type TextField = Exclude<keyof Draft, "pairs" | "message" | "delivery" | "take">;

function DraftForm({ draft, change }: { draft: Draft; change: DraftStore["change"] }) {
  const text = (field: TextField, word: string, placeholder = "") => (
    <Field word={word}>
      <input
        class="mono"
        autocomplete="off"
        spellcheck={false}
        placeholder={placeholder}
        value={draft[field]}
        onInput={({ currentTarget }) => change({ ...draft, [field]: currentTarget.value })}
      />
    </Field>
  );
  return (
    <form class="section fill" aria-label="Draft of a mapping" onSubmit={(event) => event.preventDefault()}>
      {text("name", "Name")}
      <Pairs draft={draft} change={change} />
      <CodeField
        word="Message"
        rows={3}
        placeholder="Deploy of {body.service}"
        value={draft.message}
        set={(message) => change({ ...draft, message })}
      />
      {text("session", "Session", "webhook:pr:{body.number}; empty for a new session each time")}
      <details class="fold" open={draft.key !== ""}>
        <summary>Bursts</summary>
        <div class="section">
          {text("key", "Key", "{body.number}; requests with the same key become one turn")}
          {draft.key !== "" && (
            <>
              {text("window", "Wait after the last request", "30s")}
              {text("maxWait", "Longest wait after the first request", "5m")}
              <Field word="Text of the turn">
                <Select value={draft.take} choices={TAKES} choose={(take) => change({ ...draft, take })} />
              </Field>
            </>
          )}
        </div>
      </details>
      <details class="fold">
        <summary>Agent, model and reply</summary>
        <div class="section">
          {text("agent", "Agent", "the default agent")}
          {text("model", "Model", "the agent's model")}
          {text("channel", "Channel")}
          <Field word="Reply">
            <Select value={draft.delivery} choices={REPLIES} choose={(delivery) => change({ ...draft, delivery })} />
          </Field>
          {text("to", "Address in the channel", "{body.event.channel}")}
          {text("thread", "Thread", "{body.event.thread_ts|body.event.ts}")}
        </div>
      </details>
    </form>
  );
}

/** The conditions: pairs with the same place are alternatives. */
function Pairs({ draft, change }: { draft: Draft; change: DraftStore["change"] }) {
  const set = (at: number, pair: Draft["pairs"][number] | undefined) =>
    change({ ...draft, pairs: draft.pairs.flatMap((one, n) => (n === at ? (pair ?? []) : one)) });
  const field = (n: number, part: "place" | "value", word: string) => (
    <input
      class="mono"
      aria-label={`${word} of condition ${n + 1}`}
      placeholder={part === "place" ? "body.kind" : "deploy"}
      autocomplete="off"
      spellcheck={false}
      value={draft.pairs[n]?.[part]}
      onInput={({ currentTarget }) => {
        const { place = "", value = "" } = draft.pairs[n] ?? {};
        set(n, { place, value, [part]: currentTarget.value });
      }}
    />
  );
  return (
    <fieldset>
      <legend class="field-name">Match</legend>
      {draft.pairs.length === 0 && <p class="muted">No conditions: every request matches.</p>}
      {draft.pairs.map((_, n) => (
        <div class="pair-fields" key={n}>
          {field(n, "place", "Path")}
          <span class="faint">=</span>
          {field(n, "value", "Value")}
          <button
            type="button"
            class="icon-button"
            title="Remove the condition"
            aria-label={`Remove condition ${n + 1}`}
            onClick={() => set(n, undefined)}
          >
            <Icon name="x" size={14} />
          </button>
        </div>
      ))}
      <div class="actions bar-actions">
        <ActionButton onClick={() => change({ ...draft, pairs: [...draft.pairs, { place: "", value: "" }] })}>
          Add a condition
        </ActionButton>
        <ActionButton onClick={() => change(EMPTY_DRAFT)}>Clear the draft</ActionButton>
      </div>
    </fieldset>
  );
}

function linkOf(id: string, path: string) {
  return (
    <a class="mono" href={hrefOf(`/d/${id}`)}>
      {path}
    </a>
  );
}

/** The recorded webhooks that the draft would have matched, and why it does not match the others. */
function Backtested({ of: { tried, matched, skipped, deliveries }, isStale }: { of: Backtest; isStale: boolean }) {
  const others = deliveries.filter((one) => !one.matched);
  return (
    <section class="section" aria-label="Back-test" data-stale={isStale}>
      <p role="status">
        <State of={matched > 0 ? "ok" : "unmatched"} word={`Would have matched ${matched} of ${tried}`} />{" "}
        <span class="faint">
          recorded {tried === 1 ? "request" : "requests"}
          {skipped > 0 && ` · ${skipped} without a stored JSON body`}
        </span>
      </p>
      <ul class="recent">
        {deliveries
          .filter((one) => one.matched)
          .map(({ delivery_id, path, at, caller, message }) => (
            <li key={delivery_id} class="line">
              {linkOf(delivery_id, path)}
              {caller === null && <span class="faint">not authenticated</span>}
              <span dir="auto">{message}</span>
              <span class="faint when">
                <Ago at={at} />
              </span>
            </li>
          ))}
      </ul>
      {others.length > 0 && (
        <details class="fold">
          <summary>{plural(others.length, "request")} without a match</summary>
          <Misses
            label="Requests that do not match"
            word="Request"
            rows={others.map(({ delivery_id, path, failed }) => ({
              key: delivery_id,
              head: linkOf(delivery_id, path),
              failed,
            }))}
          />
        </details>
      )}
    </section>
  );
}

/** The draft as the configuration would have it. */
function Block({ draft }: { draft: Draft }) {
  const file = useLoaded(async (signal) => (await rest().config.get({ signal })).file).value.value;
  const name = file?.split("/").at(-1) ?? "the configuration file";
  return (
    <section class="section" aria-label="Configuration">
      <p>
        Paste into <code>webhooks.mappings</code> of <code>{name}</code>. The gateway applies the change automatically.
      </p>
      <Command text={blockOf(draft, /\.ya?ml$/.test(name))} what="Copy the mapping" />
    </section>
  );
}
