import { rest } from "#console/app/api.ts";
import { plural } from "#console/lib/format.ts";
import { mappedBy } from "#console/lib/requests.ts";
import { Bulk } from "#console/parts/bulk.tsx";
import type { DeliverySummary } from "#generated/clients/typescript/src/rest.ts";

type ReplayAllOf = { query: Parameters<ReturnType<typeof rest>["deliveries"]["list"]>[0]; close: () => void };

/** Replays all requests that the filters of the list let through. */
export function ReplayAll({ query, close }: ReplayAllOf) {
  return (
    <Bulk<DeliverySummary>
      title="Replay all requests in this list?"
      act="Replay"
      done="replayed"
      noun="request"
      read={async (page, signal) => {
        const { deliveries, next_cursor } = await rest().deliveries.list({ ...query, ...page }, { signal });
        return { items: deliveries, cursor: next_cursor };
      }}
      whyNot={whyNot}
      effect={(requests) => <Effects requests={requests} />}
      run={({ delivery_id }) => rest().deliveries.replay(delivery_id)}
      leftOut={["delivery-not-replayable", "delivery-not-found"]}
      close={close}
    />
  );
}

function whyNot({ surface, outcome, caller }: DeliverySummary): string | undefined {
  if (surface !== "hooks") return "only webhooks can be replayed";
  if (outcome === "challenge") return "verification challenges start no turn";
  if (outcome === "queued" || outcome === "running") return "the turn or event has not ended";
  return caller === null ? "the sender was not authenticated, so the body was not stored" : undefined;
}

/** The work that starts, by the agent that did it the first time. */
function Effects({ requests }: { requests: readonly DeliverySummary[] }) {
  const counts = new Map<string, number>();
  for (const request of requests) {
    const { operation, agent, mapping } = request;
    const to = mappedBy(request)
      ? `through the mapping ${mapping ?? "that matches"}`
      : `for ${agent === null ? "the default agent" : `the agent ${agent}`}`;
    const what = operation === "hooks.wake" ? `event ${to}` : `turn ${to}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  return (
    <>
      <ul>
        {[...counts].map(([what, n]) => {
          const [noun = "", ...to] = what.split(" ");
          return (
            <li key={what}>
              {plural(n, noun)} {to.join(" ")}
            </li>
          );
        })}
      </ul>
      <p class="muted">
        The stored bodies run through the current mappings as new requests, the newest first. Signatures and idempotency
        keys are not checked.
      </p>
    </>
  );
}
