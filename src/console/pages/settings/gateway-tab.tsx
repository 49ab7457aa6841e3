import { useSignal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { plural } from "#console/lib/format.ts";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useAction, useLoaded } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/rpc.ts";

type Info = RpcMethods["system.info"]["result"];
type Reload = RpcMethods["system.reload"]["result"];

/** What this gateway is, which surfaces are open, and reading its configuration again. */
export const GatewayTab = () => {
  const loaded = useLoaded(() => (isConsole.peek() ? rpc().system.info() : Promise.resolve(undefined)));
  const result = useSignal<Reload | undefined>(undefined);
  const action = useAction(async () => {
    result.value = await rpc().system.reload();
    await loaded.reload();
  });
  const why = isConsole.value ? undefined : RPC_REASON;
  const info = loaded.value.value;
  return (
    <section class="section" aria-label="Gateway">
      <header>
        <h2>Configuration</h2>
        <div class="actions">
          <ActionButton why={why} isRunning={action.isRunning.value} onClick={() => void action.run()}>
            <Icon name="refresh-cw" size={14} /> {action.isRunning.value ? "Reading…" : "Reload now"}
          </ActionButton>
        </div>
      </header>
      {why && <Note tone="warning">{why}</Note>}
      {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
      {result.value && <ReloadResult result={result.value} />}
      {loaded.error.value !== undefined && (
        <TroubleNote error={loaded.error.value} retry={() => void loaded.reload()} />
      )}
      {!info && !why && loaded.error.value === undefined && <Skeleton rows={4} />}
      {info && <InfoShown info={info} />}
    </section>
  );
};

/** What came of reading the configuration again, in words. */
const ReloadResult = ({ result: { reloaded, changed, needsRestart, problems } }: { result: Reload }) => (
  <Note tone={reloaded ? (needsRestart.length > 0 ? "warning" : "ok") : "bad"}>
    <strong>
      {reloaded
        ? changed.length > 0
          ? "The new configuration is in force."
          : "Nothing has changed."
        : "It was not taken; the one before goes on."}
    </strong>
    {changed.length > 0 && (
      <p>
        Changed: <span class="mono">{changed.join(", ")}</span>
      </p>
    )}
    {needsRestart.length > 0 && (
      <p>
        These need a restart: <span class="mono">{needsRestart.join(", ")}</span>
      </p>
    )}
    {problems.length > 0 && (
      <ul>
        {problems.map(({ file, line, column, message }, n) => (
          <li key={n}>
            <span class="mono">{[file, line, column].filter((part) => part !== null).join(":")}</span> {message}
          </li>
        ))}
      </ul>
    )}
  </Note>
);

const InfoShown = ({ info: { version, node, startedAt, surfaces, methods } }: { info: Info }) => (
  <>
    <Facts
      of={[
        [
          "Version",
          <span key="v" class="mono">
            {version}
          </span>,
        ],
        ["Runs on", node.runtime],
        [
          "Node",
          <span key="n" class="mono">
            {node.id}
          </span>,
        ],
        ["Started", <Ago key="s" at={startedAt} />],
        ["Methods", plural(methods.length, "RPC method")],
      ]}
    />
    <h2>Surfaces</h2>
    <Facts
      of={surfaces.map(
        ({ name, enabled, path }) =>
          [
            name,
            <span key={name}>
              <State of={enabled ? "ok" : "gone"} word={enabled ? "open" : "off"} quiet />{" "}
              <span class="mono faint">{path}</span>
            </span>,
          ] as const,
      )}
    />
  </>
);
