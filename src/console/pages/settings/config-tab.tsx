import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { onPush } from "#console/app/live.ts";
import { choiceOf, query } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { originText, sectionsOf, valueText } from "#console/lib/config-view.ts";
import { plural } from "#console/lib/format.ts";
import { ActionButton, FilterSelect, Filters, FilterText } from "#console/parts/fields.tsx";
import { Empty, Facts, Pending } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { type Loaded, useAction, useLoaded } from "#console/parts/use.ts";
import type { ConfigValue, EffectiveConfig } from "#generated/clients/typescript/src/rest-types.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Info = RpcMethods["system.info"]["result"];

const ORIGINS = [
  ["file", "File"],
  ["environment", "Environment"],
  ["flag", "Flag"],
  ["default", "Default"],
  ["try-out", "Try-out"],
] as const;

/** The configuration in force with the origin of each value, and a button that reloads the file. */
export function ConfigTab({ head }: { head: Signal<Loaded<unknown> | undefined> }) {
  const config = useLoaded((signal) => rest().config.get({ signal }));
  const why = whyNot("system.reload");
  const info = useLoaded(async () => (whyNot("system.info") === undefined ? rpc().system.info() : undefined));
  const readAgain = async () => void (await Promise.all([config.reload(), info.reload()]));
  const action = useAction(async () => {
    await rpc().system.reload();
    await readAgain();
  });
  useEffect(() => {
    head.value = { ...config, reload: readAgain };
    return onPush(({ method }) => method === "system.reloaded" && void readAgain());
  }, []);
  const shown = config.value.value;
  return (
    <section class="section" aria-label="Configuration">
      <header>
        {shown && (
          <p class="muted">
            <span class="mono break">{shown.file ?? "No configuration file (try-out)"}</span>, read{" "}
            <Ago at={shown.loaded_at} />
          </p>
        )}
        <div class="actions">
          <ActionButton icon="refresh-cw" why={why} runs={action}>
            {action.isRunning.value ? "Reloading…" : "Reload now"}
          </ActionButton>
        </div>
      </header>
      <Failed of={action} />
      {shown && <LastReload of={shown.last_reload} />}
      <Failed of={info} />
      {info.value.value && <InfoShown info={info.value.value} />}
      <Pending of={config} rows={8} />
      {shown && <Values config={shown} />}
    </section>
  );
}

const CAUSES = { file: "after a file change", signal: "by SIGHUP", rpc: "by an RPC call" } as const;

/** The result of the last reload of the configuration. */
function LastReload({ of: last }: { of: EffectiveConfig["last_reload"] }) {
  if (last === null) return <p class="muted">Not reloaded since the gateway started.</p>;
  const { reloaded, changed, needs_restart, problems } = last;
  const words = !reloaded
    ? "Invalid configuration. The previous configuration stays active."
    : changed.length + needs_restart.length > 0
      ? "Reloaded."
      : "No changes in the file.";
  return (
    <>
      <p class="muted">
        Last reload <Ago at={last.at} />, {CAUSES[last.cause]}:
      </p>
      <div role="status">
        <Note tone={reloaded ? (needs_restart.length > 0 ? "warning" : "ok") : "bad"}>
          <strong>{words}</strong>
          {changed.length > 0 && (
            <p>
              Changed: <span class="mono">{changed.join(", ")}</span>
            </p>
          )}
          {needs_restart.length > 0 && (
            <p>
              Needs a restart: <span class="mono">{needs_restart.join(", ")}</span>
            </p>
          )}
          <ul>
            {problems.map(({ file, line, column, message }, n) => (
              <li key={n}>
                <span class="mono">{[file, line, column].filter((part) => part !== null).join(":")}</span> {message}
              </li>
            ))}
          </ul>
        </Note>
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
    drop: 3,
    cell: (value) => <span class={value.origin === "default" ? "faint" : ""}>{originText(value)}</span>,
  },
];

/** Every value, by section. */
function Values({ config: { values } }: { config: EffectiveConfig }) {
  const sections = sectionsOf(values, query.value.get("find") ?? "", choiceOf(query.value, "origin", ORIGINS));
  return (
    <>
      <Filters names={["find", "origin"]}>
        <FilterText name="find" word="Find" placeholder="A setting or value" />
        <FilterSelect name="origin" word="Set by" values={ORIGINS} />
      </Filters>
      {sections.length === 0 && <Empty title="No matching settings." />}
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
          <>
            <span class="mono">{version}</span> on {node.runtime}
          </>,
        ],
        ["Node", <span class="mono">{node.id}</span>],
        ["Started", <Ago at={startedAt} />],
        [
          "Surfaces",
          <span class="line">
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
