import { useEffect } from "preact/hooks";
import { bindKeys } from "#console/app/keys.ts";
import { go, hrefOf, query, setQuery } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { CopyButton } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { PageHead, Skeleton } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { AddressView } from "./address-view.tsx";
import { type HookAddress, readAddresses, SIGNED_AS } from "./addresses.ts";
import { NoMappings } from "./no-mappings.tsx";
import { SendTest } from "./send-test.tsx";
import { OldTokens, Senders } from "./senders.tsx";
import { Tester } from "./tester.tsx";
import "./webhooks.css";

const COLUMNS: readonly Column<HookAddress>[] = [
  { name: "Name", width: "124px", narrow: "first", cell: ({ name }) => name },
  {
    name: "Address",
    narrow: "first",
    cell: ({ path }) => (
      <span class="id">
        <span class="mono">{path}</span>
        <CopyButton text={() => location.origin + path} what={`Copy ${path} with its host`} />
      </span>
    ),
  },
  { name: "What it takes", width: "32%", drop: 1, cell: ({ does }) => <span title={does}>{does}</span> },
  {
    name: "Secret",
    width: "150px",
    drop: 2,
    narrow: "none",
    cell: ({ verify }) => (verify === null ? <span class="faint">shared token</span> : SIGNED_AS[verify]),
  },
];

/** Where webhooks come in, what each would start, and a place to try payloads. */
function Page({ params: { mapping: chosen } }: { params: Record<string, string> }) {
  const loaded = useLoaded(readAddresses);
  const back = () => go(`/webhooks${location.search}`);
  useEffect(() => bindKeys([{ key: "Escape", does: "Back to the list", run: back }]), []);
  const { addresses = [], tokens = [], mappings: rules = [], isServedHere = true } = loaded.value.value ?? {};
  const mappings = addresses.filter(({ kind }) => kind === "mapping");
  const address = addresses.find(({ key }) => key === chosen);
  const sending = query.value.get("send");
  const target = sending === null ? undefined : (addresses.find(({ key }) => key === sending) ?? addresses[1]);
  return (
    <>
      <PageHead
        title="Webhooks"
        count={mappings.length > 0 ? plural(mappings.length, "mapping") : undefined}
        updated={loaded.at.value}
        refresh={() => void loaded.reload()}
      >
        <ActionButton
          onClick={() => setQuery({ send: chosen ?? mappings[0]?.key ?? "agent" })}
          why={addresses.length === 0 ? "The addresses are not read yet." : undefined}
        >
          <Icon name="send" size={14} /> Send a test webhook
        </ActionButton>
      </PageHead>
      <Split
        list={
          <>
            <OldTokens tokens={tokens} />
            {!isServedHere && (
              <Note tone="warning">
                <strong>This address does not serve webhooks.</strong>
                <p>
                  Put <code>webhooks</code> into the surfaces of this listener, or use the host and port of the one that
                  has it.
                </p>
              </Note>
            )}
            {loaded.error.value !== undefined && (
              <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
            )}
            {addresses.length === 0 ? (
              loaded.error.value === undefined && <Skeleton rows={6} />
            ) : (
              <>
                <div class="section">
                  <Table
                    label="Addresses of webhooks"
                    rows={addresses}
                    columns={COLUMNS}
                    keyOf={({ key }) => key}
                    hrefOf={({ key }) => hrefOf(`/webhooks/${encodeURIComponent(key)}${location.search}`)}
                    selected={chosen}
                  />
                </div>
                <Senders tokens={tokens} mappings={rules} />
                {mappings.length === 0 ? <NoMappings /> : <Tester mappings={mappings} />}
              </>
            )}
          </>
        }
        inspector={
          chosen !== undefined &&
          loaded.value.value &&
          (address ? (
            <AddressView key={address.key} address={address} back={back} />
          ) : (
            <Note tone="warning">
              <strong>No mapping is named {chosen}.</strong>
              <p>
                <code>webhooks.mappings</code> in the configuration does not have it any more.{" "}
                <a href={hrefOf("/webhooks")}>See those that it has</a>.
              </p>
            </Note>
          ))
        }
      />
      {target && (
        <SendTest addresses={addresses} address={target} key={target.key} close={() => setQuery({ send: undefined })} />
      )}
    </>
  );
}

export default Page;
