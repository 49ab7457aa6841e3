import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { expiryOf, LIFETIMES } from "#console/lib/key-expiry.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { Field } from "#console/parts/fields.tsx";
import { Exact } from "#console/parts/time.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { MintedKey } from "#generated/clients/typescript/src/rest.ts";

const SCOPES = [
  ["chat", "Chat", "Sends messages, triggers skills and reads turns. For an application."],
  [
    "admin",
    "Admin",
    "Does what Chat does. Also reads and replays deliveries and events, and tries mappings. For an operator.",
  ],
] as const;

/** Asks what a key is for and what it may do, and makes it. */
export function CreateKey({ close, created }: { close: () => void; created: (key: MintedKey) => void }) {
  const name = useSignal("");
  const scope = useSignal<"chat" | "admin">("chat");
  const days = useSignal("90");
  const action = useAction(async () => {
    const expires_at = expiryOf(days.value, Date.now());
    const body = { name: name.value.trim(), scopes: [scope.value], ...(expires_at !== null && { expires_at }) };
    created(await rest().keys.create(body));
  });
  return (
    <Dialog title="Create a key" close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void action.run();
        }}
      >
        <Field word="Name" hint="What it is for. It appears in logs and in usage.">
          <input
            type="text"
            required
            maxLength={64}
            autoFocus
            value={name.value}
            placeholder="support desk"
            onInput={({ currentTarget }) => {
              name.value = currentTarget.value;
            }}
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
                onChange={() => {
                  scope.value = value;
                }}
              />
              <span>
                {word} <span class="hint">{hint}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Expiry days={days.value} choose={(next) => (days.value = next)} />
        {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
        <div class="dialog-actions">
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={action.isRunning.value || name.value.trim() === ""}>
            {action.isRunning.value ? "Creating…" : "Create"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** How long a key is good for, with the date that it comes to. */
export function Expiry({ days, choose }: { days: string; choose: (days: string) => void }) {
  const at = expiryOf(days, now.value);
  return (
    <Field word="Expires" hint={at === null ? "The key works until somebody revokes it." : <Exact at={at} />}>
      <select value={days} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {LIFETIMES.map(([value, word]) => (
          <option key={value} value={value}>
            {word}
          </option>
        ))}
      </select>
    </Field>
  );
}
