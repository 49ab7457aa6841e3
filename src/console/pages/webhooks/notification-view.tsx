import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hrefOf } from "#console/app/router.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import type { EndpointHealth } from "#console/lib/notifications.ts";
import { AgentLink, Id, idFact } from "#console/parts/copy.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { findNotifications } from "#console/parts/find-notifications.ts";
import { Facts, InspectorHead, NotStored, Pending } from "#console/parts/page.tsx";
import { State } from "#console/parts/state.tsx";
import { Countdown, Exact } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Notification } from "#generated/clients/typescript/src/rest.ts";
import { pathOfEndpoint } from "./endpoints.tsx";

type Shown = {
  id: string;
  /** The row of the list, if the list has it. */
  row: Notification | undefined;
  /** When the list was read. */
  readAt: number | undefined;
  /** True if the endpoint is configured. Undefined while the configuration is loaded. */
  isConfigured: boolean | undefined;
  health: EndpointHealth | undefined;
  back: () => void;
  changed: (notification: Notification) => void;
};

const ALL = "All notifications";

/** One notification: its event, its attempts, and a button that sends it again. */
export function NotificationView({ id, row, readAt, isConfigured, health, back, changed }: Shown) {
  const loaded = useLoaded(async (signal) => ({ found: row ?? (await findNotifications(id, signal))[0] }), [id]);
  useEffect(() => {
    if (row) loaded.value.value = { found: row };
    else if (loaded.value.peek()?.found?.ended_at === null) void loaded.reload();
  }, [row, readAt]);
  const read = loaded.value.value;
  if (!read) return <Pending of={loaded} rows={10} />;
  if (!read.found)
    return (
      <NotStored all={ALL} back={back} title="This notification is no longer stored." id={id}>
        <code>limits.notifications</code> in the configuration sets how many ended notifications of each endpoint are
        stored.
      </NotStored>
    );
  const notification = read.found;
  const { type, state, endpoint, agent, attempts, status, reason, ended_at, next_attempt_at } = notification;
  return (
    <article aria-label={`Notification ${id}`}>
      <InspectorHead all={ALL} back={back}>
        <div class="line">
          <State of={state} />
          <strong>{type}</strong>
          <span class="faint">to {endpoint}</span>
        </div>
        <Id id={id} most={48} />
        <div class="actions bar-actions bottom-bar">
          <Replay
            of={notification}
            isConfigured={isConfigured}
            health={health}
            done={(queued) => {
              loaded.value.value = { found: queued };
              changed(queued);
            }}
          />
        </div>
      </InspectorHead>
      {reason !== null && state !== "delivered" && (
        <Note tone={state === "failed" ? "bad" : "warning"}>
          <strong>{state === "failed" ? `Failed after ${plural(attempts, "attempt")}` : "Last attempt failed"}</strong>
          <p>{reason}</p>
        </Note>
      )}
      {state === "waiting" && health?.state === "stopped" && (
        <Note tone="warning">
          The endpoint is stopped. The notification waits until the configuration of <code>notify.{endpoint}</code> is
          changed or <a href={hrefOf("/settings/configuration")}>reloaded</a>, at most a day.
        </Note>
      )}
      <Facts
        of={[
          [
            "Endpoint",
            isConfigured === false ? (
              <>
                {endpoint} <span class="faint">(removed from the configuration)</span>
              </>
            ) : (
              <a href={hrefOf(pathOfEndpoint(endpoint))}>{endpoint}</a>
            ),
          ],
          ["Event", <span class="mono">{type}</span>],
          agent !== null && ["Agent", <AgentLink name={agent} />],
          idFact("Turn", notification.turn_id, "t"),
          idFact("Session", notification.session_id, "s"),
          ["webhook-id", <Id id={notification.webhook_id} most={40} />],
          ["Attempts", String(attempts)],
          status !== null && ["Last answer", `HTTP ${status}`],
          ["Queued", <Exact at={notification.created_at} />],
          next_attempt_at !== null && ["Next attempt", <Countdown to={next_attempt_at} over="now" />],
          ended_at !== null && [state === "failed" ? "Failed" : "Delivered", <Exact at={ended_at} />],
        ]}
      />
    </article>
  );
}

type ReplayOf = Pick<Shown, "isConfigured" | "health"> & { of: Notification; done: (queued: Notification) => void };

/** A button that sends the notification again, or at once if it has not ended. */
function Replay({ of: { notification_id, endpoint, ended_at }, isConfigured, health, done }: ReplayOf) {
  const hasEnded = ended_at !== null;
  const word = hasEnded ? "Replay" : "Send now";
  return (
    <AskButton
      icon={hasEnded ? "rotate-ccw" : "send"}
      word={word}
      hotkey="r"
      why={whyNoReplay(endpoint, isConfigured, hasEnded, health)}
      title={hasEnded ? "Replay this notification?" : "Send this notification now?"}
      act={word}
      run={async () => {
        done(await rest().notifications.replay(notification_id));
        say("The notification is queued.");
      }}
    >
      <p>
        The endpoint <strong>{endpoint}</strong> receives the event{hasEnded && " again"}, with the same{" "}
        <code>webhook-id</code>. {hasEnded && "The number of attempts restarts at 0."}
      </p>
      {health?.state === "stopped" && <p class="muted">The endpoint is stopped, so the notification will wait.</p>}
    </AskButton>
  );
}

function whyNoReplay(
  endpoint: string,
  isConfigured: boolean | undefined,
  hasEnded: boolean,
  health: EndpointHealth | undefined,
): string | undefined {
  if (isConfigured === undefined) return "Loading the endpoints…";
  if (!isConfigured) return `The endpoint ${endpoint} was removed from the configuration.`;
  return !hasEnded && health?.state === "stopped"
    ? `The endpoint ${endpoint} is stopped. Reload the configuration to send its notifications.`
    : undefined;
}
