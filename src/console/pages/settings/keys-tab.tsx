import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { isConsole, KEYS_REASON } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { relative } from "#console/lib/format.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Empty, Skeleton } from "#console/parts/page.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { KeyList, MintedKey } from "#generated/clients/rest.ts";
import { CreateKey } from "./create-key.tsx";
import { NewKey } from "./new-key.tsx";

type Key = KeyList["keys"][number];

/** All pages of the list: there are few keys. */
const readKeys = async (signal: AbortSignal): Promise<Key[]> => {
  const keys: Key[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query = { limit: 200, ...(cursor !== "" && { cursor }) };
    const page: KeyList = await rest().call("keys.list", { query }, { signal });
    keys.push(...page.keys);
    cursor = page.next_cursor;
  }
  return keys;
};

/** REST keys: who has one, and how to make and revoke one. */
export const KeysTab = () => {
  const loaded = useLoaded((signal) => (isConsole.peek() ? readKeys(signal) : Promise.resolve([])));
  const isCreating = useSignal(false);
  const minted = useSignal<MintedKey | undefined>(undefined);
  const revoking = useSignal<Key | undefined>(undefined);
  const keys = loaded.value.value;
  const why = isConsole.value ? undefined : KEYS_REASON;
  return (
    <section class="section" aria-label="API keys">
      <header>
        <p class="muted">
          A REST key opens <code>/api/v1</code>. The gateway keeps its hash alone, so it is shown once.
        </p>
        <div class="actions">
          <ActionButton
            kind="primary"
            why={why}
            onClick={() => {
              isCreating.value = true;
            }}
          >
            <Icon name="plus" size={14} /> Create a key
          </ActionButton>
        </div>
      </header>
      {why && <Note tone="warning">{why}</Note>}
      {loaded.error.value !== undefined && (
        <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
      )}
      {keys === undefined && loaded.error.value === undefined && <Skeleton rows={3} />}
      {keys?.length === 0 && !why && (
        <Empty title="There is no key yet.">
          <p class="muted">
            Create one, and send it as <code>Authorization: Bearer</code> with every call of REST.
          </p>
        </Empty>
      )}
      {keys && keys.length > 0 && (
        <Table
          label="API keys"
          rows={keys}
          columns={columns((key) => {
            revoking.value = key;
          })}
          keyOf={(key) => key.key_id ?? `config:${key.name}`}
        />
      )}
      {isCreating.value && (
        <CreateKey
          close={() => {
            isCreating.value = false;
          }}
          created={(key) => {
            isCreating.value = false;
            minted.value = key;
            void loaded.reload();
          }}
        />
      )}
      {minted.value && (
        <NewKey
          minted={minted.value}
          close={() => {
            minted.value = undefined;
          }}
        />
      )}
      {revoking.value && (
        <Revoke
          revoked={revoking.value}
          close={() => {
            revoking.value = undefined;
          }}
          done={() => void loaded.reload()}
        />
      )}
    </section>
  );
};

const columns = (revoke: (key: Key) => void): Column<Key>[] => [
  { name: "Name", narrow: "first", cell: ({ name }) => <strong>{name}</strong> },
  {
    name: "Prefix",
    width: "130px",
    narrow: "first",
    cell: ({ prefix }) => (prefix ? <span class="mono">{prefix}…</span> : <span class="faint">not known</span>),
  },
  { name: "Scopes", width: "110px", cell: ({ scopes }) => scopes.join(", ") },
  {
    name: "Created",
    width: "110px",
    cell: ({ created_at }) => (created_at === null ? <span class="faint">–</span> : <Ago at={created_at} />),
  },
  { name: "Last used", width: "110px", cell: ({ last_used_at }) => <Ago at={last_used_at} /> },
  {
    name: "Source",
    width: "120px",
    narrow: "none",
    cell: ({ source }) => (source === "config" ? "Configuration" : "Console"),
  },
  {
    name: "Action",
    width: "100px",
    align: "end",
    cell: (key) => (
      <ActionButton
        kind="danger"
        why={
          key.key_id === null
            ? "It stands in the configuration: take it out of gateway.rest.auth.keys there."
            : undefined
        }
        onClick={() => revoke(key)}
      >
        Revoke
      </ActionButton>
    ),
  },
];

const Revoke = ({
  revoked: { key_id, name, last_used_at },
  close,
  done,
}: {
  revoked: Key;
  close: () => void;
  done: () => void;
}) => (
  <Confirm
    title={`Revoke the key ${name}?`}
    act="Revoke the key"
    isDanger
    close={close}
    run={async () => {
      await rest().call("keys.revoke", { path: { key_id: key_id ?? "" } });
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
