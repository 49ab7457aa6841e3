import { rest } from "#console/app/api.ts";
import { plural } from "#console/lib/format.ts";
import { mappedBy } from "#console/lib/requests.ts";
import { Bulk, readAll } from "#console/parts/bulk.tsx";
import type { DeliverySummary } from "#generated/clients/typescript/src/rest.ts";

type Query = NonNullable<Parameters<ReturnType<typeof rest>["deliveries"]["list"]>[0]>;

/** The most requests that are searched for replays of those in the list. */
const MOST_SEARCHED = 5_000;

/** Replays all requests that the filters of the list let through. */
export function ReplayAll({ query, close }: { query: Query; close: () => void }) {
  return (
    <Bulk<DeliverySummary>
      title="Replay all requests in this list?"
      act="Replay"
      done="replayed"
      noun="request"
      read={(signal) => readReplayable(query, signal)}
      effect={(requests) => <Effects requests={requests} />}
      run={({ delivery_id }) => rest().deliveries.replay(delivery_id)}
      pathOf={({ delivery_id }) => `/d/${delivery_id}`}
      leftOut={["delivery-not-replayable", "delivery-not-found"]}
      close={close}
    />
  );
}

async function readReplayable(query: Query, signal: AbortSignal) {
  const { items, hasMore } = await readAll(pagesOf(query), signal);
  const from = items.at(-1)?.at;
  // The filters of the list may exclude a replay, because its outcome, agent or mapping can differ.
  const later =
    from === undefined ? [] : (await readAll(pagesOf({ surface: "hooks", from }), signal, MOST_SEARCHED)).items;
  const replayed = new Set(later.map(({ replay_of }) => replay_of));
  const reasons = items.map((item) => whyNot(item, replayed));
  return {
    able: items.filter((_, n) => reasons[n] === undefined),
    skipped: reasons.filter((reason) => reason !== undefined),
    hasMore,
  };
}

function pagesOf(query: Query) {
  return async (page: Query, signal: AbortSignal) => {
    const { deliveries, next_cursor } = await rest().deliveries.list({ ...query, ...page }, { signal });
    return { items: deliveries, cursor: next_cursor };
  };
}

function whyNot(request: DeliverySummary, replayed: ReadonlySet<string | null>): string | undefined {
  const { delivery_id, surface, outcome, caller, replay_of } = request;
  if (surface !== "hooks") return "only webhooks can be replayed";
  if (outcome === "challenge") return "verification challenges start no turn";
  if (outcome === "queued" || outcome === "running") return "the turn or event has not ended";
  if (caller === null) return "the sender was not authenticated, so the body was not stored";
  if (replayed.has(delivery_id)) return "already replayed";
  const hasFailed = outcome === "failed" || outcome === "dead";
  return replay_of !== null && !hasFailed ? "replays of other requests" : undefined;
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
        The stored bodies run through the current mappings as new requests, the oldest first. Signatures and idempotency
        keys are not checked.
      </p>
    </>
  );
}
