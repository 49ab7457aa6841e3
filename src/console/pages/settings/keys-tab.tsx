import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { now } from "#console/app/clock.ts";
import { query, setQuery } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { keyState } from "#console/lib/key-expiry.ts";
import { ActionButton } from "#console/parts/fields.tsx";
import { Empty, Pending } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { type Loaded, useLoaded } from "#console/parts/use.ts";
import type { KeyList, MintedKey } from "#generated/clients/typescript/src/rest.ts";
import { CreateKey, type Key, NewKey, Revoke, Rotate } from "./key-dialogs.tsx";
import { LimitsOf } from "./limits.tsx";

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

/** The dialog that is open. */
type Asking = { create: true } | { created: MintedKey } | { rotate: Key } | { revoke: Key };

/** REST keys: their use and their ends; create, rotate and revoke one. */
export function KeysTab({ head }: { head: Signal<Loaded<unknown> | undefined> }) {
  const why = whyNot("keys");
  const loaded = useLoaded((signal) => (why === undefined ? readKeys(signal) : Promise.resolve([])));
  const asking = useSignal<Asking | undefined>(
    why === undefined && query.peek().has("create") ? { create: true } : undefined,
  );
  const keys = loaded.value.value;
  // A key is used elsewhere: after a return to this window, its last use is shown.
  useEffect(() => {
    head.value = loaded;
    const reload = () => void loaded.reload();
    addEventListener("focus", reload);
    return () => removeEventListener("focus", reload);
  }, []);
  const show = (next?: Asking) => {
    asking.value = next;
    setQuery({ create: undefined });
    if (!next || "created" in next) void loaded.reload();
  };
  // Does not close the view of a new key, which has replaced the dialog.
  const close = () => "created" in (asking.peek() ?? {}) || show();
  const created = (key: MintedKey) => show({ created: key });
  const open = asking.value;
  return (
    <section class="section" aria-label="API keys">
      <header>
        <p class="muted">
          An API key gives access to <code>/api/v1</code>. Only a hash is stored; the key is shown once.
        </p>
        <div class="actions">
          <ActionButton icon="plus" kind="primary" why={why} onClick={() => show({ create: true })}>
            Create a key
          </ActionButton>
        </div>
      </header>
      {why && <Note tone="warning">{why}</Note>}
      <Pending of={loaded} rows={3} />
      {keys?.length === 0 && !why && (
        <Empty title="No API keys yet.">
          <p class="muted">
            Create one, and send it as <code>Authorization: Bearer</code> with every REST call.
          </p>
        </Empty>
      )}
      {keys && keys.length > 0 && (
        <Table
          label="API keys"
          rows={keys}
          columns={columnsOf(keys, {
            rotate: (key) => show({ rotate: key }),
            async revoke(key) {
              // The question names the last use, and must not name an old one.
              await loaded.reload();
              show({ revoke: loaded.value.peek()?.find(({ key_id }) => key_id === key.key_id) ?? key });
            },
          })}
          keyOf={(key) => key.key_id ?? `config:${key.name}`}
        />
      )}
      {open && "create" in open && <CreateKey close={close} created={created} />}
      {open && "created" in open && <NewKey minted={open.created} close={() => show()} />}
      {open && "rotate" in open && <Rotate of={open.rotate} close={close} done={created} />}
      {open && "revoke" in open && <Revoke of={open.revoke} close={close} done={close} />}
    </section>
  );
}

const IN_FILE = "Defined in the configuration. Change gateway.rest.auth.keys in the file.";

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
    { name: "Name", width: "15%", min: 100, narrow: "first", cell: ({ name }) => <strong>{name}</strong> },
    {
      name: "Prefix",
      width: "104px",
      drop: 1,
      narrow: "first",
      cell: ({ prefix }) => prefix && <span class="mono">{prefix}…</span>,
    },
    { name: "Scopes", width: "104px", drop: 3, cell: ({ scopes }) => scopes.join(", ") },
    { name: "Limits", drop: 2, cell: (key) => <LimitsOf of={key} /> },
    {
      name: "Created",
      width: "96px",
      drop: 1,
      narrow: "none",
      cell: ({ created_at }) => (created_at === null ? <span class="faint">configured</span> : <Ago at={created_at} />),
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
