import type { Signal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { isAllowed, type RpcToken, tokensOf } from "#console/lib/config-view.ts";
import { plural } from "#console/lib/format.ts";
import { Command } from "#console/parts/copy.tsx";
import { Empty, Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { readConfig } from "./read-config.ts";
import { type ReadState, useReadState } from "./read-state.ts";

/** All that is asked for: the methods, the surface, and the tokens where the configuration is told. */
async function readTokens(signal: AbortSignal) {
  if (!isConsole.peek()) return undefined;
  const [info, config] = await Promise.all([rpc().system.info(), readConfig(signal)]);
  return { info, tokens: config && tokensOf(config.values) };
}

/** RPC tokens: what each may call. They are made in the configuration alone. */
export function TokensTab({ read }: { read: Signal<ReadState | undefined> }) {
  const loaded = useLoaded(readTokens);
  useReadState(read, [loaded]);
  const found = loaded.value.value;
  return (
    <section class="section" aria-label="RPC tokens">
      <p class="muted">
        An RPC token opens <code>/rpc</code> and <code>/rpc/ws</code>. Add, change or remove one in{" "}
        <code>gateway.rpc.auth.tokens</code> of the configuration, then reload it.
      </p>
      {!isConsole.value && <Note tone="warning">{RPC_REASON}</Note>}
      {loaded.error.value !== undefined && (
        <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
      )}
      {isConsole.value && !found && loaded.error.value === undefined && <Skeleton rows={6} />}
      {found && (
        <>
          <Facts
            of={[
              ...found.info.surfaces
                .filter(({ name }) => name.startsWith("rpc"))
                .map(
                  ({ name, enabled, path }) =>
                    [
                      name,
                      <span key={name}>
                        <State of={enabled ? "ok" : "gone"} word={enabled ? "open" : "off"} quiet />{" "}
                        <span class="mono faint">{path}</span>
                      </span>,
                    ] as const,
                ),
              ["Methods", plural(found.info.methods.length, "method")],
            ]}
          />
          {found.tokens === undefined ? (
            <Note>This gateway does not tell its tokens yet. They stand in its configuration file.</Note>
          ) : found.tokens.length === 0 ? (
            <Empty title="The configuration has no RPC token.">
              <Command text={FIRST_TOKEN} />
              <p class="muted">Put this into the configuration file. The gateway applies the change automatically.</p>
            </Empty>
          ) : (
            <Grid tokens={found.tokens} methods={found.info.methods} />
          )}
        </>
      )}
    </section>
  );
}

const FIRST_TOKEN = `gateway: {
  rpc: { auth: { tokens: [{ name: "ops", token: "\${RPC_TOKEN}", permissions: "*" }] } },
}`;

/** Which token may call which method. */
function Grid({ tokens, methods }: { tokens: readonly RpcToken[]; methods: readonly string[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="group" aria-label="Permissions">
      <table class="grid">
        <thead>
          <tr>
            <th scope="col">Method</th>
            {tokens.map(({ index, name }) => (
              <th key={index} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {methods.map((method) => (
            <tr key={method}>
              <th scope="row" class="mono">
                {method}
              </th>
              {tokens.map((token) => (
                <td key={token.index}>
                  {isAllowed(token, method) ? (
                    <State of="ok" word="may call" quiet />
                  ) : (
                    <span class="faint">may not</span>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
