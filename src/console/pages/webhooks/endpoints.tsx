import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { count, duration } from "#console/lib/format.ts";
import { type Endpoint, type EndpointHealth, exampleEndpoint, healthOf } from "#console/lib/notifications.ts";
import { Command } from "#console/parts/copy.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Empty } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Failed, ResultNote } from "#console/parts/trouble.tsx";
import { useAction } from "#console/parts/use.ts";
import type { NotificationTest } from "#generated/clients/typescript/src/rest.ts";

type Health = Parameters<typeof healthOf>[0] | undefined;
type Tested = { name: string; result: NotificationTest };
type EndpointsOf = { endpoints: readonly Endpoint[]; health: Health; changed: () => void };
/** The button of a row; `testing` is the endpoint that is tested now. */
type Testing = { testing: string | undefined; test: (name: string) => void };

function columnsOf(health: Health, { testing, test }: Testing): readonly Column<Endpoint>[] {
  return [
    {
      name: "Endpoint",
      width: "16%",
      narrow: "first",
      cell: ({ name }) => <a href={hrefOf(pathOfEndpoint(name))}>{name}</a>,
    },
    {
      name: "State",
      width: "96px",
      narrow: "first",
      cell: ({ name }) =>
        health ? (
          <State of={healthOf(health, name).state} quiet />
        ) : (
          <span class="faint" title={whyNot("system.health")}>
            not known
          </span>
        ),
    },
    { name: "Last failure", cell: ({ name }) => health && faultOf(healthOf(health, name)) },
    {
      name: "Events",
      width: "18%",
      min: 120,
      drop: 3,
      narrow: "none",
      cell: (endpoint) => (
        <span title={[endpoint.events.join(", "), scopeOf(endpoint)].join(" ").trim()}>
          {endpoint.events.join(", ")} <span class="faint">{scopeOf(endpoint)}</span>
        </span>
      ),
    },
    {
      name: "Address",
      width: "26%",
      drop: 1,
      narrow: "none",
      cell: ({ url }) => (
        <span class="mono" title={url}>
          {url}
        </span>
      ),
    },
    {
      name: "Test",
      width: "124px",
      align: "end",
      cell: ({ name }) => (
        <ActionButton
          icon="send"
          name={`Send test to ${name}`}
          isRunning={testing !== undefined}
          onClick={() => test(name)}
        >
          {testing === name ? "Sending…" : "Send test"}
        </ActionButton>
      ),
    },
  ];
}

function scopeOf({ agents, hasReplies }: Endpoint): string {
  return [agents.length > 0 && `for ${agents.join(", ")}`, hasReplies && "with replies"].filter(Boolean).join(", ");
}

/** Why the last delivery failed, and the number of waiting notifications. */
function faultOf({ state, reason, waiting }: EndpointHealth) {
  if (state === "ok") return null;
  const words = [reason, waiting > 0 && `${count(waiting)} waiting`].filter(Boolean).join(", ");
  return <span title={words}>{words}</span>;
}

/** The list of the notifications for an endpoint. */
export function pathOfEndpoint(name: string): string {
  return `/webhooks?tab=notifications&endpoint=${encodeURIComponent(name)}`;
}

/** The configured endpoints with their states, and a button that sends a test event. */
export function Endpoints({ endpoints, health, changed }: EndpointsOf) {
  const tested = useSignal<Tested | undefined>(undefined);
  const testing = useSignal<string | undefined>(undefined);
  const action = useAction(async (name: string) => {
    testing.value = name;
    tested.value = undefined;
    try {
      tested.value = { name, result: await rest().notifications.test(name) };
    } finally {
      testing.value = undefined;
    }
    changed();
  });
  const isStopped = health !== undefined && endpoints.some(({ name }) => healthOf(health, name).state === "stopped");
  return (
    <section class="section" aria-label="Endpoints">
      <Failed of={action} />
      {tested.value && <TestResult of={tested.value} health={health} close={() => (tested.value = undefined)} />}
      <Table
        label="Endpoints of notifications"
        rows={endpoints}
        columns={columnsOf(health, { testing: testing.value, test: (name) => void action.run(name) })}
        keyOf={({ name }) => name}
      />
      {isStopped && (
        <p class="hint">
          A stopped endpoint gets no notifications until its configuration is changed or{" "}
          <a href={hrefOf("/settings/configuration")}>reloaded</a>. Waiting notifications fail after a day.
        </p>
      )}
    </section>
  );
}

/** The answer of an endpoint to a test event. */
function TestResult({ of: { name, result }, health, close }: { of: Tested; health: Health; close: () => void }) {
  const { delivered, reason, status, duration_ms } = result;
  const isStopped = health !== undefined && healthOf(health, name).state === "stopped";
  return (
    <ResultNote tone={delivered ? "ok" : "bad"} close={close}>
      <strong>
        {name} {delivered ? "accepted" : "did not accept"} the test event.
      </strong>{" "}
      {delivered ? `HTTP ${status}` : reason}, after {duration(duration_ms)}.{" "}
      {delivered && isStopped && (
        <p>
          The endpoint is still stopped: <a href={hrefOf("/settings/configuration")}>reload the configuration</a> to
          send its notifications.
        </p>
      )}
    </ResultNote>
  );
}

/** How to configure the first endpoint. */
export function FirstEndpoint({ file }: { file: string | null }) {
  const name = file?.split("/").at(-1) ?? "the configuration file";
  return (
    <Empty title="No endpoints are configured.">
      <p class="muted">
        The gateway can send a signed webhook when a turn ends, an agent fails or a budget is used up. Add an endpoint
        to <code>{name}</code>, and set both variables:
      </p>
      <Command text={exampleEndpoint(/\.ya?ml$/.test(name))} what="Copy the configuration" />
      <p class="muted">
        The gateway applies the change automatically. Events, receivers and retries:{" "}
        <a href="/docs/notifications.html" target="_blank" rel="noreferrer">
          Notifications
        </a>
      </p>
    </Empty>
  );
}
