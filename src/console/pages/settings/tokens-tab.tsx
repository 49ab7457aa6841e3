import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { type RpcToken, tokensOf } from "#console/lib/config-view.ts";
import { Command } from "#console/parts/copy.tsx";
import { Empty, Pending } from "#console/parts/page.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { type Loaded, useLoaded } from "#console/parts/use.ts";
import { LimitsOf } from "./limits.tsx";

const FIRST_TOKEN = `gateway: {
  rpc: { auth: { tokens: [{ name: "ops", token: "\${RPC_TOKEN}", permissions: "*" }] } },
}`;

const COLUMNS: readonly Column<RpcToken>[] = [
  { name: "Name", width: "26%", min: 100, narrow: "first", cell: ({ name }) => <strong>{name}</strong> },
  {
    name: "Permissions",
    cell: ({ permissions }) =>
      permissions.includes("*") ? "all" : <span class="mono">{permissions.join(", ") || "none"}</span>,
  },
  { name: "Limits", width: "24%", min: 120, drop: 3, cell: (token) => <LimitsOf of={token} /> },
];

/** The RPC tokens of the configuration, each with its permissions and limits. */
export function TokensTab({ head }: { head: Signal<Loaded<unknown> | undefined> }) {
  const loaded = useLoaded(async (signal) => tokensOf((await rest().config.get({ signal })).values));
  useEffect(() => {
    head.value = loaded;
  }, []);
  const tokens = loaded.value.value;
  return (
    <section class="section config-section" aria-label="RPC tokens">
      <p class="muted">
        An RPC token gives access to <code>/rpc</code> and <code>/rpc/ws</code>, and signs in to this console with the
        same permissions. Tokens are defined in <code>gateway.rpc.auth.tokens</code> of the configuration.
      </p>
      <Pending of={loaded} rows={3} />
      {tokens?.length === 0 && (
        <Empty title="No RPC tokens yet.">
          <Command text={FIRST_TOKEN} />
          <p class="muted">Add these lines to the configuration file. The gateway applies the change automatically.</p>
        </Empty>
      )}
      {tokens !== undefined && tokens.length > 0 && (
        <Table label="RPC tokens" rows={tokens} columns={COLUMNS} keyOf={({ index }) => String(index)} />
      )}
    </section>
  );
}
