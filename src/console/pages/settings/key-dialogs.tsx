import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { say } from "#console/app/toasts.ts";
import { chatCommand } from "#console/lib/curl.ts";
import { relative } from "#console/lib/format.ts";
import { expiryOf, LIFETIMES } from "#console/lib/key-expiry.ts";
import { limitsText } from "#console/lib/key-limits.ts";
import { Command, CopyButton } from "#console/parts/copy.tsx";
import { Confirm, Dialog } from "#console/parts/dialog.tsx";
import { Field, Select } from "#console/parts/fields.tsx";
import { Exact } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import type { KeyList, MintedKey } from "#generated/clients/typescript/src/rest.ts";
import { AgentsField, BudgetField, RateField, useKeyLimits } from "./key-limit-fields.tsx";

export type Key = KeyList["keys"][number];

const SCOPES = [
  ["chat", "Chat", "Sends messages, triggers skills, reads turns. For an application."],
  ["admin", "Admin", "Also reads and replays requests and events, and tries mappings. For an operator."],
] as const;

/** Asks for the purpose and the rights of a key, and creates it. */
export function CreateKey({ close, created }: { close: () => void; created: (key: MintedKey) => void }) {
  const name = useSignal("");
  const scope = useSignal<"chat" | "admin">("chat");
  const days = useSignal("90");
  const isAdmin = scope.value === "admin";
  const limits = useKeyLimits(isAdmin);
  return (
    <Confirm
      title="Create a key"
      act="Create"
      working="Creating…"
      close={close}
      hasFields
      why={name.value.trim() === "" ? "Enter a name first." : limits.why}
      run={async () => {
        const expires_at = expiryOf(days.value, Date.now());
        const ends = expires_at !== null && { expires_at };
        created(await rest().keys.create({ name: name.value.trim(), scopes: [scope.value], ...limits.body, ...ends }));
      }}
    >
      <Field word="Name" hint="The purpose. Shown in logs and in usage.">
        <input
          type="text"
          required
          maxLength={64}
          autoFocus
          value={name.value}
          placeholder="support desk"
          onInput={({ currentTarget }) => (name.value = currentTarget.value)}
        />
      </Field>
      <fieldset>
        <legend class="field-name">Scope</legend>
        {SCOPES.map(([value, word, hint]) => (
          <label key={value} class="choice">
            <input
              type="radio"
              name="scope"
              value={value}
              checked={scope.value === value}
              onChange={() => (scope.value = value)}
            />
            <span>
              {word} <span class="hint">{hint}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <AgentsField which={limits.which} agents={limits.agents} isAdmin={isAdmin} />
      <RateField limit={limits.limit} windowMs={limits.windowMs} />
      <BudgetField tokens={limits.tokens} cost={limits.cost} per={limits.per} />
      <Expiry days={days.value} choose={(next) => (days.value = next)} />
    </Confirm>
  );
}

/** The lifetime of a key, with the date of its end. */
function Expiry({ days, choose }: { days: string; choose: (days: string) => void }) {
  const at = expiryOf(days, now.value);
  return (
    <Field word="Expires" hint={at === null ? "The key works until it is revoked." : <Exact at={at} />}>
      <Select value={days} choices={LIFETIMES} choose={choose} />
    </Field>
  );
}

/** A new key, shown once, with a call that uses it. */
export function NewKey({ minted, close }: { minted: MintedKey; close: () => void }) {
  const { name, key, config_line, expires_at, agents } = minted;
  const limits = limitsText(minted);
  const message = { message: "Hello", ...(agents && { agent: agents[0] }) };
  return (
    <Dialog title={`Key created: ${name}`} close={close} size="wide" isFirm>
      <Note tone="warning">Copy the key now. Only a hash is stored; the key is shown once.</Note>
      <div class="actions new-key">
        <output class="mono">{key}</output>
        <CopyButton text={key} what="Copy the key" label="Copy" />
      </div>
      <h3>Try the key</h3>
      <Command text={chatCommand(location.origin, message, key)} />
      {limits && <p>Limited to {limits}.</p>}
      {expires_at && (
        <p>
          Expires on <Exact at={expires_at} />.
        </p>
      )}
      <details>
        <summary>Add the key to the configuration</summary>
        <p class="hint">
          With the memory store, keys are lost on restart. This line in <code>gateway.rest.auth.keys</code> keeps the
          key valid. It contains the hash, not the key.
        </p>
        <Command text={config_line} />
      </details>
      <div class="actions dialog-actions">
        <button type="button" class="button primary" onClick={close}>
          I have copied the key
        </button>
      </div>
    </Dialog>
  );
}

const OVERLAPS = [
  ["0", "Now"],
  ["3600", "In an hour"],
  ["86400", "In a day"],
  ["604800", "In a week"],
  ["2592000", "In 30 days"],
] as const;

type Change<Result extends unknown[]> = { of: Key; close: () => void; done: (...result: Result) => void };

/** Replaces a key by a new one. The old key stays valid for a while. */
export function Rotate({ of: { key_id, name }, close, done }: Change<[MintedKey]>) {
  const overlap = useSignal<(typeof OVERLAPS)[number][0]>("86400");
  const days = useSignal("90");
  return (
    <Confirm
      title={`Rotate the key ${name}?`}
      act="Rotate the key"
      close={close}
      run={async () => {
        const body = { overlap_seconds: Number(overlap.value), expires_at: expiryOf(days.value, Date.now()) };
        done(await rest().keys.rotate(key_id ?? "", body));
      }}
    >
      <p>
        Creates a key with the same name, scopes and limits. The old key stays valid until the time that you choose.
      </p>
      <Field word="Old key expires">
        <Select value={overlap.value} choices={OVERLAPS} choose={(next) => (overlap.value = next)} />
      </Field>
      <Expiry days={days.value} choose={(next) => (days.value = next)} />
    </Confirm>
  );
}

/** Ends a key at once. */
export function Revoke({ of: { key_id, name, last_used_at }, close, done }: Change<[]>) {
  return (
    <Confirm
      title={`Revoke the key ${name}?`}
      act="Revoke the key"
      isDanger
      close={close}
      run={async () => {
        await rest().keys.revoke(key_id ?? "");
        say(`Key revoked: ${name}`);
        done();
      }}
    >
      <p>
        New calls with this key are refused, and open streams end. Running turns continue.{" "}
        <strong>
          {last_used_at === null
            ? "Never used."
            : `Last used ${relative(new Date(last_used_at).getTime(), Date.now())}.`}
        </strong>
      </p>
    </Confirm>
  );
}
