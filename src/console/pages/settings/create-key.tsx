import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { Field } from "#console/parts/fields.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { MintedKey } from "#generated/clients/rest.ts";

const SCOPES = [
  ["chat", "Chat", "Sends messages, triggers skills, and reads its turns."],
  ["admin", "Admin", "All of that, and what operators need: deliveries, events, mappings."],
] as const;

const DAY_MS = 86_400_000;

/** How long a key is good, as a choice of days; an empty one is for ever. */
export const ExpiryChoice = ({ days, onChange }: { days: string; onChange: (days: string) => void }) => {
  const at = days === "" ? undefined : new Date(Date.now() + Number(days) * DAY_MS);
  return (
    <Field
      word="Expires"
      hint={
        at
          ? `It is good until ${at.toLocaleDateString("en-GB", { dateStyle: "long" })}.`
          : "It is good until it is revoked."
      }
    >
      <select value={days} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="30">In 30 days</option>
        <option value="90">In 90 days</option>
        <option value="365">In 365 days</option>
        <option value="">Never</option>
      </select>
    </Field>
  );
};
export const expiryOf = (days: string): { expires_at?: string } =>
  days === "" ? {} : { expires_at: new Date(Date.now() + Number(days) * DAY_MS).toISOString() };

/** Asks what a key is for and what it may do, and makes it. */
export const CreateKey = ({ close, created }: { close: () => void; created: (key: MintedKey) => void }) => {
  const name = useSignal("");
  const scope = useSignal<"chat" | "admin">("chat");
  const days = useSignal("90");
  const action = useAction(async () => {
    created(
      await rest().call("keys.create", {
        body: { name: name.value.trim(), scopes: [scope.value], ...expiryOf(days.value) },
      }),
    );
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
        <ExpiryChoice
          days={days.value}
          onChange={(next) => {
            days.value = next;
          }}
        />
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
};
