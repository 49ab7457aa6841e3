import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { Dialog } from "#console/parts/dialog.tsx";
import { Field } from "#console/parts/fields.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { KeyList, MintedKey } from "#generated/clients/rest.ts";
import { ExpiryChoice, expiryOf } from "./create-key.tsx";

type Of = { rotated: KeyList["keys"][number]; close: () => void; created: (key: MintedKey) => void };

const OVERLAPS = [
  ["0", "At once"],
  ["3600", "In an hour"],
  ["86400", "In a day"],
  ["604800", "In a week"],
  ["2592000", "In 30 days"],
] as const;

/** Makes a new key in the place of another, and lets both work for a while. */
export const RotateKey = ({ rotated: { key_id, name }, close, created }: Of) => {
  const overlap = useSignal("86400");
  const days = useSignal("90");
  const action = useAction(async () => {
    const body = { overlap_seconds: Number(overlap.value), ...expiryOf(days.value) };
    created((await rest().call("keys.rotate", { path: { key_id: key_id ?? "" }, body })) as unknown as MintedKey);
  });
  return (
    <Dialog title={`Rotate the key ${name}`} close={close}>
      <p>A new key with the same name and scopes is made. Give it to every client before the old one ends.</p>
      <Field word="The old key ends">
        <select
          value={overlap.value}
          onChange={({ currentTarget }) => {
            overlap.value = currentTarget.value;
          }}
        >
          {OVERLAPS.map(([value, word]) => (
            <option key={value} value={value}>
              {word}
            </option>
          ))}
        </select>
      </Field>
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
        <button
          type="button"
          class="button primary"
          disabled={action.isRunning.value}
          onClick={() => void action.run()}
        >
          {action.isRunning.value ? "Rotating…" : "Rotate"}
        </button>
      </div>
    </Dialog>
  );
};
