import { useSignal } from "@preact/signals";
import { rest } from "#console/app/api.ts";
import { useKeys } from "#console/app/keys.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { copyText, say } from "#console/app/toasts.ts";
import { markdownOf } from "#console/lib/moment.ts";
import { curlNote, curlOfDelivery, jsonOf, mappedBy, prettyBody, roundedNumberOf } from "#console/lib/requests.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { DryRunDialog, EditAndReplay, Effect, useReplayTrial } from "./edit-replay.tsx";

type Action = "replay" | "edit" | "dry-run" | "announce";

/** The buttons of a request, each with its key. A disabled button shows the reason. */
export function Actions({ delivery, changed }: { delivery: Delivery; changed: () => void }) {
  const asking = useSignal<Action | undefined>(undefined);
  const whyNot: Record<Action, string | undefined> = {
    replay: whyNoReplay(delivery),
    edit: whyNoEdit(delivery),
    "dry-run": whyNoDryRun(delivery),
    announce: whyNoAnnounce(delivery),
  };
  const ask = (what: Action) => {
    const why = whyNot[what];
    if (why === undefined) asking.value = what;
    else say(why, "bad");
  };
  const { announcement } = delivery;
  const close = () => {
    asking.value = undefined;
  };
  const copyCurl = () =>
    void copyText(curlOfDelivery(delivery, location.origin), ["Copied as curl.", curlNote(delivery)].join(" ").trim());
  const copyMarkdown = () => void copyText(markdownOf(delivery, location.origin), "Copied as Markdown");
  const copyLink = () => void copyText(location.origin + hrefOf(`/d/${delivery.delivery_id}`), "Link copied");
  useKeys([
    { key: "r", does: "Replay", run: () => ask("replay") },
    { key: "e", does: "Edit and replay", run: () => ask("edit") },
    { key: "d", does: "Dry run", run: () => ask("dry-run") },
    ...(announcement ? [{ key: "s", does: "Resend reply", run: () => ask("announce") }] : []),
    { key: "c", does: "Copy as curl", run: copyCurl },
    { key: "y", does: "Copy link", run: copyLink },
    { key: "Y", does: "Copy as Markdown", run: copyMarkdown },
  ]);
  const isHook = delivery.surface === "hooks";
  const send = async (body?: Record<string, unknown> | unknown[]) => {
    const again = await rest().deliveries.replay(delivery.delivery_id, body && { body });
    say(again.outcome === "unmatched" ? "Replayed. No current mapping matches." : "Replayed.");
    go(`/d/${again.delivery_id}`);
  };
  const announce = async () => {
    await rest().turns.announce(delivery.turn_id ?? "");
    say("The reply is queued.");
    changed();
  };
  return (
    <>
      <div class="actions bar-actions bottom-bar">
        <ActionButton icon="rotate-ccw" onClick={() => ask("replay")} why={whyNot.replay} hotkey="r">
          Replay
        </ActionButton>
        {isHook && (
          <>
            <ActionButton icon="pencil" onClick={() => ask("edit")} why={whyNot.edit} hotkey="e" name="Edit and replay">
              Edit
            </ActionButton>
            {mappedBy(delivery) && (
              <ActionButton icon="play" onClick={() => ask("dry-run")} why={whyNot["dry-run"]} hotkey="d">
                Dry run
              </ActionButton>
            )}
          </>
        )}
        {announcement && (
          <ActionButton icon="send" onClick={() => ask("announce")} why={whyNot.announce} hotkey="s">
            Resend reply
          </ActionButton>
        )}
        <ActionButton icon="terminal" onClick={copyCurl} hotkey="c" name="Copy as curl" />
        <ActionButton icon="link" onClick={copyLink} hotkey="y" name="Copy link" />
      </div>
      {asking.value === "replay" && (
        <Confirm title="Replay this request?" act="Replay" close={close} run={send}>
          <p>
            <ReplayEffect delivery={delivery} />
          </p>
          <p class="muted">
            The stored body runs through the current mappings. The signature and the idempotency key are not checked.
          </p>
        </Confirm>
      )}
      {asking.value === "announce" && announcement && (
        <Confirm title="Resend this reply?" act="Resend" close={close} run={announce}>
          <p>
            The channel <strong>{announcement.channel}</strong> receives the reply again, with the same{" "}
            <code>webhook-id</code>. No new turn starts.
          </p>
          {announcement.reason !== null && <p class="muted">Last attempt: {announcement.reason}</p>}
        </Confirm>
      )}
      {asking.value === "edit" && <EditAndReplay delivery={delivery} send={send} close={close} />}
      {asking.value === "dry-run" && <DryRunDialog delivery={delivery} close={close} />}
    </>
  );
}

/** The effect of a replay as the request is stored. */
function ReplayEffect({ delivery }: { delivery: Delivery }) {
  const payload = prettyBody(delivery);
  const { result } = useReplayTrial(delivery, payload);
  if (payload === undefined) return <>The body is not JSON, so the gateway will refuse the replay.</>;
  return <Effect delivery={delivery} payload={payload} result={result} />;
}

function whyNoReplay({ replayable, surface, caller, outcome }: Delivery): string | undefined {
  if (replayable) return undefined;
  if (surface === "schedule") return "Only webhooks can be replayed. Run the schedule again on its page.";
  if (surface !== "hooks") return "Only webhooks can be replayed. Copy this request as curl.";
  if (outcome === "challenge") return "A verification challenge starts no turn.";
  if (caller === null) return "The sender was not authenticated, so the body was not stored.";
  return NO_BODY;
}

const NO_BODY = "The body is not stored.";

const HOUR_MS = 3_600_000;

/** An older gateway on the same database can leave a delivered reply at `waiting` or `retrying`: after an hour, the gateway decides. */
function whyNoAnnounce({ announcement, ended_at: endedAt }: Delivery): string | undefined {
  const isOpen = announcement?.state === "waiting" || announcement?.state === "retrying";
  const isOld = endedAt !== null && Date.now() - Date.parse(endedAt) > HOUR_MS;
  return isOpen && !isOld ? "The reply is still being delivered." : undefined;
}

function whyNoEdit(delivery: Delivery): string | undefined {
  const reason = whyNoReplay(delivery);
  if (reason) return reason;
  if (prettyBody(delivery) === undefined) return "The body is not JSON.";
  const rounded = roundedNumberOf(jsonOf(delivery) ?? "");
  return rounded && `The body contains ${rounded}, which editing would round. Use Replay to send the body unchanged.`;
}

function whyNoDryRun(delivery: Delivery): string | undefined {
  if (!mappedBy(delivery)) return `No mapping uses ${delivery.path}.`;
  return delivery.body === null ? NO_BODY : undefined;
}
