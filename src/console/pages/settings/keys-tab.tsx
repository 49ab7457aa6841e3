import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { isConsole, KEYS_REASON } from "#console/app/session.ts";
import { keyState } from "#console/lib/key-expiry.ts";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Empty, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { KeyList, MintedKey } from "#generated/clients/typescript/src/rest.ts";
import { Revoke, Rotate } from "./change-key.tsx";
import { CreateKey } from "./create-key.tsx";
import { NewKey } from "./new-key.tsx";
import { type ReadState, useReadState } from "./read-state.ts";

type Key = KeyList["keys"][number];

/** All pages of the list: there are few keys. */
async function readKeys(signal: AbortSignal): Promise<Key[]> {
  const keys: Key[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query = { limit: 200, ...(cursor !== "" && { cursor }) };
    const page: KeyList = await rest().keys.list(query, { signal });
    keys.push(...page.keys);
    cursor = page.next_cursor;
  }
  return keys;
}

/** REST keys: who has one, and how to make and revoke one. */
export function KeysTab({ read }: { read: Signal<ReadState | undefined> }) {
  const loaded = useLoaded((signal) => (isConsole.peek() ? readKeys(signal) : Promise.resolve([])));
  useReadState(read, [loaded]);
  const isCreating = useSignal(false);
  const minted = useSignal<MintedKey | undefined>(undefined);
  const revoking = useSignal<Key | undefined>(undefined);
  const rotating = useSignal<Key | undefined>(undefined);
  const keys = loaded.value.value;
  const why = isConsole.value ? undefined : KEYS_REASON;
  // A key is used elsewhere: whoever comes back to this window sees when.
  useEffect(() => {
    const reload = () => void loaded.reload();
    addEventListener("focus", reload);
    return () => removeEventListener("focus", reload);
  }, []);
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
          columns={columnsOf(keys, {
            rotate: (key) => {
              rotating.value = key;
            },
            async revoke(key) {
              // The question names the last use, and must not name an old one.
              await loaded.reload();
              revoking.value = loaded.value.peek()?.find(({ key_id }) => key_id === key.key_id) ?? key;
            },
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
            void loaded.reload();
          }}
        />
      )}
      {rotating.value && (
        <Rotate
          rotated={rotating.value}
          close={() => {
            rotating.value = undefined;
          }}
          done={(key) => {
            minted.value = key;
            void loaded.reload();
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
}

const IN_FILE = "This key stands in the configuration. Change gateway.rest.auth.keys in the file.";

const STATE_WORDS = { active: "", expiring: "expires soon", expired: "expired", replaced: "replaced" } as const;

/** Until when a key works, and the key that took its place. */
function Expires({ of: { expires_at, replaced_by }, keys }: { of: Key; keys: readonly Key[] }) {
  const state = keyState({ expires_at, replaced_by }, now.value);
  return (
    <>
      <span class="narrow-word">expires </span>
      {expires_at ? <Ago at={expires_at} /> : <span class="faint">never</span>}{" "}
      {state !== "active" && <State of={state === "expired" ? "expired" : "paused"} word={STATE_WORDS[state]} quiet />}
      {replaced_by && (
        <>
          {" by "}
          <span class="mono" title={replaced_by}>
            {keys.find(({ key_id }) => key_id === replaced_by)?.prefix ?? replaced_by}
          </span>
        </>
      )}
    </>
  );
}

function columnsOf(
  keys: readonly Key[],
  { rotate, revoke }: Record<"rotate" | "revoke", (key: Key) => unknown>,
): Column<Key>[] {
  return [
    { name: "Name", narrow: "first", cell: ({ name }) => <strong>{name}</strong> },
    {
      name: "Prefix",
      width: "104px",
      drop: 3,
      narrow: "first",
      cell: ({ prefix }) => (prefix ? <span class="mono">{prefix}…</span> : <span class="faint">not known</span>),
    },
    { name: "Scopes", width: "80px", drop: 3, cell: ({ scopes }) => scopes.join(", ") },
    {
      name: "Created",
      width: "88px",
      drop: 1,
      narrow: "none",
      cell: ({ created_at }) => (created_at === null ? <span class="faint">–</span> : <Ago at={created_at} />),
    },
    {
      name: "Last used",
      width: "88px",
      drop: 2,
      cell: ({ last_used_at }) => (
        <>
          <span class="narrow-word">used </span>
          <Ago at={last_used_at} />
        </>
      ),
    },
    { name: "Expires", width: "148px", cell: (key) => <Expires of={key} keys={keys} /> },
    {
      name: "Source",
      width: "108px",
      drop: 1,
      narrow: "none",
      cell: ({ source }) => (source === "config" ? "Configuration" : "Console"),
    },
    {
      name: "Actions",
      width: "170px",
      align: "end",
      cell: (key) => {
        const why = key.key_id === null ? IN_FILE : undefined;
        return (
          <span class="key-actions">
            <ActionButton why={why} onClick={() => rotate(key)}>
              Rotate
            </ActionButton>
            <ActionButton kind="danger" why={why} onClick={() => revoke(key)}>
              Revoke
            </ActionButton>
          </span>
        );
      },
    },
  ];
}
