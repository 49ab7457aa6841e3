import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { copyText, say } from "#console/app/toasts.ts";
import { curlNote, curlOfDelivery, mappedBy, prettyBody, roundedNumberOf } from "#console/lib/requests.ts";
import { Confirm } from "#console/parts/dialog.tsx";
import { ActionButton } from "#console/parts/fields.tsx";
import { Icon } from "#console/parts/icon.tsx";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { DryRun, EditAndReplay, useReplayTrial } from "./edit-replay.tsx";
import { Effect } from "./effect.tsx";

type Action = "replay" | "edit" | "dry-run";

/** The buttons of a request, each with its key. A button that cannot be used says why. */
export function Actions({ delivery }: { delivery: Delivery }) {
  const asking = useSignal<Action | undefined>(undefined);
  const whyNot: Record<Action, string | undefined> = {
    replay: whyNoReplay(delivery),
    edit: whyNoEdit(delivery),
    "dry-run": whyNoDryRun(delivery),
  };
  const latest = useRef(whyNot);
  latest.current = whyNot;
  const ask = (what: Action) => {
    const why = latest.current[what];
    if (why === undefined) asking.value = what;
    else say(why, "bad");
  };
  const close = () => {
    asking.value = undefined;
  };
  const copyCurl = () =>
    void copyText(curlOfDelivery(delivery, location.origin), ["Copied as curl.", curlNote(delivery)].join(" ").trim());
  const copyLink = () => void copyText(location.origin + hrefOf(`/d/${delivery.delivery_id}`), "Link copied");
  useEffect(
    () =>
      bindKeys([
        { key: "r", does: "Replay", run: () => ask("replay") },
        { key: "e", does: "Edit and replay", run: () => ask("edit") },
        { key: "d", does: "Dry run", run: () => ask("dry-run") },
        { key: "c", does: "Copy as curl", run: copyCurl },
        { key: "y", does: "Copy the link", run: copyLink },
      ]),
    [delivery.delivery_id],
  );
  const isHook = delivery.surface === "hooks";
  const send = async (body?: Record<string, unknown> | unknown[]) => {
    const again = await rest().deliveries.replay(delivery.delivery_id, body && { body });
    say(again.outcome === "unmatched" ? "Replayed. No current mapping matches." : "Replayed.");
    go(`/d/${again.delivery_id}`);
  };
  return (
    <>
      <div class="bar-actions bottom-bar">
        <ActionButton onClick={() => ask("replay")} why={whyNot.replay} hotkey="r">
          <Icon name="rotate-ccw" size={14} /> Replay
        </ActionButton>
        {isHook && (
          <>
            <ActionButton onClick={() => ask("edit")} why={whyNot.edit} hotkey="e">
              <Icon name="pencil" size={14} /> Edit and replay
            </ActionButton>
            <ActionButton onClick={() => ask("dry-run")} why={whyNot["dry-run"]} hotkey="d">
              <Icon name="play" size={14} /> Dry run
            </ActionButton>
          </>
        )}
        <ActionButton onClick={copyCurl} hotkey="c">
          <Icon name="terminal" size={14} /> curl
        </ActionButton>
        <ActionButton onClick={copyLink} hotkey="y">
          <Icon name="link" size={14} /> Link
        </ActionButton>
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
      {asking.value === "edit" && <EditAndReplay delivery={delivery} send={send} close={close} />}
      {asking.value === "dry-run" && <DryRun delivery={delivery} close={close} />}
    </>
  );
}

/** The effect of a replay as the request is stored. */
function ReplayEffect({ delivery }: { delivery: Delivery }) {
  const payload = prettyBody(delivery);
  const { result } = useReplayTrial(delivery, payload);
  if (payload === undefined) return <>The body is not JSON: the replay will be refused and recorded.</>;
  return <Effect delivery={delivery} payload={payload} result={result} />;
}

function whyNoReplay({ replayable, surface, caller, outcome }: Delivery): string | undefined {
  if (replayable) return undefined;
  if (surface !== "hooks") return "It came by an API, whose client can send it again. Copy it as curl.";
  if (outcome === "challenge") return "A sender asked whether the address is ours; there is nothing to do again.";
  if (caller === null) return "The sender was not authenticated, so the body was not stored.";
  return "Its body is not kept.";
}

function whyNoEdit(delivery: Delivery): string | undefined {
  const reason = whyNoReplay(delivery);
  if (reason) return reason;
  if (prettyBody(delivery) === undefined) return "Its body is not JSON.";
  const rounded = roundedNumberOf(delivery.body ?? "");
  return rounded && `Its body holds ${rounded}, which an edit would round. A replay sends it as it came.`;
}

function whyNoDryRun(delivery: Delivery): string | undefined {
  if (!mappedBy(delivery)) return `It came to ${delivery.path}, where no mapping is asked.`;
  return delivery.body === null ? "Its body is not kept." : undefined;
}
