import type { Signal } from "@preact/signals";
import { rpc } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { choiceOf, query } from "#console/app/router.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { type ConfigReply, type ConfigValue, originText, sectionsOf, valueText } from "#console/lib/config-view.ts";
import { plural } from "#console/lib/format.ts";
import { ActionButton, FilterSelect, Filters, FilterText } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import { Empty, Facts, Skeleton } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useAction, useHeld, useLoaded } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";
import { readConfig } from "./read-config.ts";
import { type ReadState, useReadState } from "./read-state.ts";
import { ReloadResult } from "./reload-result.tsx";

type Info = RpcMethods["system.info"]["result"];

const ORIGINS = [
  ["file", "File"],
  ["environment", "Environment"],
  ["flag", "Flag"],
  ["default", "Default"],
  ["try-out", "Try-out"],
] as const;

/** The configuration in force with the origin of each value, and a button that reads the file again. */
export function ConfigTab({ read }: { read: Signal<ReadState | undefined> }) {
  const config = useLoaded(readConfig);
  const info = useLoaded(() => (isConsole.peek() ? rpc().system.info() : Promise.resolve(undefined)));
  useReadState(read, [config, info]);
  const readAgain = () => Promise.all([config.reload(), info.reload()]);
  const action = useAction(async () => {
    await rpc().system.reload();
    await readAgain();
  });
  useHeld(() => {
    const stop = onPush(({ method }) => method === "system.reloaded" && void readAgain());
    return () => void stop();
  }, []);
  const why = isConsole.value ? undefined : RPC_REASON;
  const shown = config.value.value;
  return (
    <section class="section" aria-label="Configuration">
      <header>
        {shown && (
          <p class="muted">
            <span class="mono break">{shown.file ?? "No file: the gateway runs as a try-out"}</span>, read{" "}
            <Ago at={shown.loaded_at} />
          </p>
        )}
        <div class="actions">
          <ActionButton why={why} isRunning={action.isRunning.value} onClick={() => void action.run()}>
            <Icon name="refresh-cw" size={14} /> {action.isRunning.value ? "Reading…" : "Reload now"}
          </ActionButton>
        </div>
      </header>
      {why && <Note tone="warning">{why}</Note>}
      {action.error.value !== undefined && <TroubleNote error={action.error.value} />}
      {shown && <LastReload of={shown.last_reload} />}
      {info.error.value !== undefined && <TroubleNote error={info.error.value} retry={() => void info.reload()} />}
      {info.value.value && <InfoShown info={info.value.value} />}
      {config.error.value !== undefined && (
        <TroubleNote error={config.error.value} retry={() => void config.reload()} />
      )}
      {shown ? <Values config={shown} /> : config.error.value === undefined && <Skeleton rows={8} />}
    </section>
  );
}

const CAUSES = { file: "a file changed", signal: "SIGHUP came", rpc: "somebody asked for it" } as const;

/** The result of the last reload of the configuration. */
function LastReload({ of: last }: { of: ConfigReply["last_reload"] }) {
  return last === null ? (
    <p class="muted">It was not read again since the gateway started.</p>
  ) : (
    <>
      <p class="muted">
        Last reload <Ago at={last.at} />, as {CAUSES[last.cause]}:
      </p>
      <div role="status">
        <ReloadResult {...last} needsRestart={last.needs_restart} />
      </div>
    </>
  );
}

const COLUMNS: readonly Column<ConfigValue>[] = [
  { name: "Setting", width: "38%", narrow: "first", cell: ({ path }) => <span class="mono break">{path}</span> },
  { name: "Value", cell: ({ value }) => <span class="mono break">{valueText(value)}</span> },
  {
    name: "Set by",
    width: "220px",
    cell: (value) => <span class={value.origin === "default" ? "faint" : ""}>{originText(value)}</span>,
  },
];

/** Every value, by section. */
function Values({ config: { values } }: { config: ConfigReply }) {
  const sections = sectionsOf(values, query.value.get("find") ?? "", choiceOf(query.value, "origin", ORIGINS));
  return (
    <>
      <Filters names={["find", "origin"]}>
        <FilterText name="find" word="Find" placeholder="A setting or value" />
        <FilterSelect name="origin" word="Set by" values={ORIGINS} />
      </Filters>
      {sections.length === 0 && <Empty title="No setting fits." />}
      {sections.map(({ name, values: inside }) => (
        <section key={name} class="config-section" aria-label={name}>
          <h2 class="mono">{name}</h2>
          <Table label={`Settings of ${name}`} rows={inside} columns={COLUMNS} keyOf={({ path }) => path} />
        </section>
      ))}
    </>
  );
}

function InfoShown({ info: { version, node, startedAt, surfaces, methods } }: { info: Info }) {
  return (
    <Facts
      of={[
        [
          "Version",
          <span key="v">
            <span class="mono">{version}</span> on {node.runtime}
          </span>,
        ],
        [
          "Node",
          <span key="n" class="mono">
            {node.id}
          </span>,
        ],
        ["Started", <Ago key="s" at={startedAt} />],
        [
          "Surfaces",
          <span key="f" class="surfaces">
            {surfaces.map(({ name, enabled, path }) => (
              <span key={name}>
                <State of={enabled ? "ok" : "gone"} word={enabled ? name : `${name} is off`} quiet />{" "}
                <span class="mono faint">{path}</span>
              </span>
            ))}
          </span>,
        ],
        ["RPC", plural(methods.length, "method")],
      ]}
    />
  );
}
