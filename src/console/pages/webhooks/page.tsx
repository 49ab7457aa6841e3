import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { go, hrefOf, query, setQuery } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { CopyButton } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { PageHead, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { AddressView } from "./address-view.tsx";
import { type HookAddress, type Requests, readAddresses, readRecent, requestsOf, SIGNED_AS } from "./addresses.ts";
import { Notifications, type NotificationsHead } from "./notifications.tsx";
import { SendTest } from "./send-test.tsx";
import { Senders } from "./senders.tsx";
import "./webhooks.css";

function columnsOf(recent: Requests): readonly Column<HookAddress>[] {
  return [
    { name: "Name", width: "124px", narrow: "first", cell: ({ name }) => name },
    {
      name: "Address",
      width: "24%",
      min: 140,
      narrow: "first",
      cell: ({ path }) => (
        <span class="id">
          <span class="mono">{path}</span>
          <CopyButton text={() => location.origin + path} what={`Copy ${path} with its host`} />
        </span>
      ),
    },
    {
      name: "Description",
      drop: 2,
      cell: ({ does, rule }) =>
        rule?.coalesce ? (
          <span class="two-lines">
            <span title={does}>{does}</span>
            <span class="faint" title={rule.coalesce.key}>
              one turn per {rule.coalesce.key}
            </span>
          </span>
        ) : (
          <span title={does}>{does}</span>
        ),
    },
    {
      name: "Secret",
      width: "120px",
      narrow: "none",
      drop: 1,
      cell: ({ verify }) => (verify === null ? <span class="faint">shared token</span> : SIGNED_AS[verify]),
    },
    {
      name: "Last request",
      width: "112px",
      drop: 3,
      narrow: "first",
      cell: (address) => {
        const [last] = requestsOf(address, recent);
        return last ? <Ago at={last.at} /> : <span class="faint">none recently</span>;
      },
    },
    {
      name: "Failed",
      width: "96px",
      narrow: "none",
      drop: 3,
      cell: (address) => {
        const requests = requestsOf(address, recent);
        const failing = requests.filter(({ outcome }) => FAILING.has(outcome)).length;
        return failing > 0 && <State of="failed" word={`${failing} of ${requests.length}`} quiet />;
      },
    },
  ];
}
const FAILING: ReadonlySet<string> = new Set(["failed", "refused", "unmatched", "dead"]);

/** Where webhooks are received, who sends them, a place to try payloads and build mappings, and the events that the gateway sends. */
function Page({ params: { mapping: chosen, notification } }: { params: Record<string, string> }) {
  const loaded = useLoaded(readAddresses);
  const recent = useLoaded(readRecent);
  const { addresses = [], tokens = [], mappings: rules = [], isServedHere = true } = loaded.value.value ?? {};
  const mappings = addresses.filter(({ kind }) => kind === "mapping");
  const sending = query.value.get("send");
  const target = sending === null ? undefined : (addresses.find(({ key }) => key === sending) ?? addresses[1]);
  const refresh = () => {
    void loaded.reload();
    void recent.reload();
  };
  const old = tokens.filter(({ age_days, max_age_days }) => (age_days ?? 0) >= max_age_days).length;
  const tab = query.value.get("tab");
  const open = notification !== undefined ? "notifications" : chosen === undefined ? (tab ?? "addresses") : "addresses";
  const isOutgoing = open === "notifications";
  const head = useSignal<NotificationsHead | undefined>(undefined);
  const isTrying = ["delivery", "target", "build"].some((name) => query.value.has(name));
  // A link that names only a request or a mapping opens the tab Try.
  useEffect(() => {
    if (isTrying && tab === null) setQuery({ tab: "try" });
  }, [isTrying]);
  return (
    <>
      <PageHead
        title="Webhooks"
        count={isOutgoing ? head.value?.count : mappings.length > 0 ? plural(mappings.length, "mapping") : undefined}
        of={isOutgoing ? head.value : { at: loaded.at, reload: refresh }}
      >
        {isOutgoing ? (
          head.value?.hasRows && (
            <ActionButton icon="rotate-ccw" onClick={() => setQuery({ replay: "failed" })}>
              Replay all failed
            </ActionButton>
          )
        ) : (
          <ActionButton
            icon="send"
            onClick={() => setQuery({ send: chosen ?? mappings[0]?.key ?? "agent" })}
            why={addresses.length === 0 ? "Loading the addresses…" : undefined}
          >
            Send a test webhook
          </ActionButton>
        )}
      </PageHead>
      {!isServedHere && !isOutgoing && (
        <Note tone="warning">
          <strong>This listener does not serve webhooks.</strong>
          <p>
            Add <code>webhooks</code> to the surfaces of this listener, or use the host and port of the listener that
            serves them.
          </p>
        </Note>
      )}
      <Pending of={loaded} rows={6} />
      {addresses.length > 0 && (
        <Tabs
          label="Parts of Webhooks"
          open={open}
          onOpen={(id) => go(`/webhooks${id === "addresses" ? "" : `?tab=${id}`}`, { replace: true })}
          tabs={[
            {
              id: "addresses",
              name: "Addresses",
              body: () => <Addresses addresses={addresses} chosen={chosen} recent={recent.value.value ?? []} />,
            },
            {
              id: "senders",
              name: old === 0 ? "Senders" : `Senders · ${plural(old, "token")} to rotate`,
              body: () => <Senders tokens={tokens} mappings={rules} />,
            },
            { id: "try", name: "Try", body: () => <LazyTry mappings={mappings} /> },
            {
              id: "notifications",
              name: "Notifications",
              body: () => <Notifications chosen={notification} head={head} />,
            },
          ]}
        />
      )}
      {target && (
        <SendTest
          addresses={addresses}
          address={target}
          key={target.key}
          close={() => {
            setQuery({ send: undefined });
            refresh();
          }}
        />
      )}
    </>
  );
}

/** The tab Try, loaded when it is first opened. */
function LazyTry({ mappings }: { mappings: readonly HookAddress[] }) {
  const loaded = useLoaded(() => import("./try.tsx"));
  const Try = loaded.value.value?.Try;
  return Try ? <Try mappings={mappings} /> : <Pending of={loaded} rows={6} />;
}

type AddressList = { addresses: readonly HookAddress[]; chosen: string | undefined; recent: Requests };

function Addresses({ addresses, chosen, recent }: AddressList) {
  const back = () => go("/webhooks");
  const address = addresses.find(({ key }) => key === chosen);
  return (
    <Split
      back={back}
      list={
        <Table
          label="Addresses of webhooks"
          rows={addresses}
          columns={columnsOf(recent)}
          keyOf={({ key }) => key}
          hrefOf={({ key }) => hrefOf(`/webhooks/${encodeURIComponent(key)}`)}
          selected={chosen}
        />
      }
      inspector={
        chosen !== undefined &&
        (address ? (
          <AddressView key={address.key} address={address} requests={requestsOf(address, recent)} back={back} />
        ) : (
          <Note tone="warning">
            <strong>No mapping is named {chosen}.</strong>
            <p>
              Mappings are configured in <code>webhooks.mappings</code>. <a href={hrefOf("/webhooks")}>All addresses</a>
            </p>
          </Note>
        ))
      }
    />
  );
}

export default Page;
