import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { say } from "#console/app/toasts.ts";
import { relative } from "#console/lib/format.ts";
import { expiryOf } from "#console/lib/key-expiry.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import { Field } from "#console/parts/fields.tsx";
import type { KeyList, MintedKey } from "#generated/clients/typescript/src/rest.ts";
import { Expiry } from "./create-key.tsx";

type Key = KeyList["keys"][number];

const OVERLAPS = [
  ["0", "Now"],
  ["3600", "In an hour"],
  ["86400", "In a day"],
  ["604800", "In a week"],
  ["2592000", "In 30 days"],
] as const;

/** Makes a key in the place of another, which goes on for a while. */
export function Rotate({
  rotated: { key_id, name },
  close,
  done,
}: {
  rotated: Key;
  close: () => void;
  done: (key: MintedKey) => void;
}) {
  const overlap = useSignal("86400");
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
        This makes a new key with the same name and scopes. The old key goes on until its end, so that its users can
        change over.
      </p>
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
      <Expiry days={days.value} choose={(next) => (days.value = next)} />
    </Confirm>
  );
}

/** Ends a key at once. */
export function Revoke({
  revoked: { key_id, name, last_used_at },
  close,
  done,
}: {
  revoked: Key;
  close: () => void;
  done: () => void;
}) {
  return (
    <Confirm
      title={`Revoke the key ${name}?`}
      act="Revoke the key"
      isDanger
      close={close}
      run={async () => {
        await rest().keys.revoke(key_id ?? "");
        say(`The key ${name} is revoked.`);
        done();
      }}
    >
      <p>
        From now on every call with it is refused, and its streams end. Turns that it started go on.{" "}
        <strong>
          {last_used_at === null
            ? "It was never used."
            : `It was last used ${relative(new Date(last_used_at).getTime(), Date.now())}.`}
        </strong>
      </p>
    </Confirm>
  );
}
