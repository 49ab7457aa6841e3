import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import type { AnyPush } from "#console/app/live.ts";
import { choiceOf, go, hrefOf, query } from "#console/app/router.ts";
import { isConsole } from "#console/app/session.ts";
import { camelToSnake } from "#console/lib/case.ts";
import { FilterSelect, Filters, FilterText } from "#console/parts/fields.tsx";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, PageHead, Skeleton } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { ReplaySign, State } from "#console/parts/state.tsx";
import type { Column } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { TroubleNote } from "#console/parts/trouble.tsx";
import type { DeliveryOutcome } from "#generated/clients/typescript/src/rest.ts";
import { FirstRequest } from "./first-request.tsx";
import { Inspector, type Row } from "./inspector.tsx";
import "./activity.css";

const SURFACES = [
  ["hooks", "Webhooks"],
  ["rest", "REST"],
  ["rpc", "RPC"],
] as const;
const OUTCOMES = (
  [
    ...(["refused", "unmatched", "challenge", "repeated", "queued", "running"] as const),
    ...(["completed", "failed", "cancelled", "handled", "dead", "gone"] as const),
  ] satisfies readonly DeliveryOutcome[]
).map((one) => [one, one] as const);
const HOURS = [
  ["1", "Last hour"],
  ["24", "Last day"],
  ["168", "Last week"],
] as const;
const FILTERS = ["surface", "outcome", "mapping", "agent", "session", "hours", "id"] as const;

/** The address's filters, as a query of the gateway. */
function askedOf(given: URLSearchParams) {
  const surface = choiceOf(given, "surface", SURFACES);
  const outcome = choiceOf(given, "outcome", OUTCOMES);
  const hours = Number(choiceOf(given, "hours", HOURS) ?? 0);
  const [mapping, agent, session, id] = ["mapping", "agent", "session", "id"].map((name) => given.get(name));
  return {
    ...(surface && { surface }),
    ...(outcome && { outcome }),
    ...(mapping && { mapping }),
    ...(agent && { agent }),
    ...(session && { session_id: session }),
    ...(id && { id }),
    ...(hours > 0 && { from: new Date(Date.now() - hours * 3_600_000).toISOString() }),
  };
}

/** Says if a pushed row passes the filters. */
function isWanted(row: Row, given: URLSearchParams): boolean {
  const { surface, outcome, mapping, agent, session_id, id } = askedOf(given);
  return (
    (surface === undefined || row.surface === surface) &&
    (outcome === undefined || row.outcome === outcome) &&
    (mapping === undefined || row.mapping === mapping) &&
    (agent === undefined || row.agent === agent) &&
    (session_id === undefined || row.session_id === session_id) &&
    (id === undefined || idsOf(row).includes(id))
  );
}

function idsOf({ delivery_id, request_id, message_id, turn_id, event_id, session_id, sender_id }: Row) {
  return [delivery_id, request_id, message_id, turn_id, event_id, session_id, sender_id];
}

function rowOf({ method, params }: AnyPush): Row | undefined {
  if (method !== "delivery.recorded" && method !== "delivery.changed") return undefined;
  return camelToSnake((params as { delivery: object }).delivery) as Row;
}

const COLUMNS: readonly Column<Row>[] = [
  {
    name: "Request",
    narrow: "first",
    cell: ({ operation, path, method, replay_of }) => (
      <>
        {replay_of && <ReplaySign />} <span class="mono">{path}</span> <span class="faint">{operation || method}</span>
      </>
    ),
  },
  {
    name: "Outcome",
    width: "152px",
    narrow: "first",
    // Many have no status: that of a call is decided by its turn, after the call was recorded.
    cell: ({ outcome, status }) => (
      <>
        <State of={outcome} /> {status !== null && <span class="mono faint">{status}</span>}
      </>
    ),
  },
  { name: "Caller", width: "18%", cell: ({ caller, address }) => caller ?? <span class="faint">{address}</span> },
  { name: "When", width: "88px", align: "end", cell: ({ at }) => <Ago at={at} /> },
];

/** The flight recorder: every inbound request, and its outcome. */
function Page({ params: { delivery } }: { params: Record<string, string> }) {
  const given = query.value;
  const filters = FILTERS.map((name) => given.get(name) ?? "").join("\n");
  const rows = useLiveRows<Row>({
    keyOf: ({ delivery_id }) => delivery_id,
    async read(page, signal) {
      const asked = { ...askedOf(query.peek()), ...page };
      const { deliveries, next_cursor } = await rest().deliveries.list(asked, { signal });
      return { items: deliveries, cursor: next_cursor };
    },
    request: { gateway: null, deliveries: true },
    itemOf(push, isShown) {
      const row = rowOf(push);
      // A shown row changes in its place, also to an outcome that the filters do not let in.
      return row && (isShown(row.delivery_id) || isWanted(row, query.peek())) ? row : undefined;
    },
    keys: [filters],
    isReading: delivery !== undefined,
  });
  const list = rows.list.value;
  const back = () => go(`/activity${location.search}`);
  useEffect(() => bindKeys([{ key: "Escape", does: "Back to the list", run: back }]), []);
  const isFiltered = Object.keys(askedOf(given)).length > 0;
  const { items } = list;
  return (
    <>
      <PageHead
        title="Activity"
        count={countOf(list, "delivery", "deliveries")}
        updated={rows.at.value}
        refresh={() => void rows.reload()}
      />
      <Split
        list={
          <>
            <Filters names={FILTERS}>
              <FilterSelect name="surface" word="Surface" values={SURFACES} />
              <FilterSelect name="outcome" word="Outcome" values={OUTCOMES} />
              <FilterSelect name="hours" word="When" values={HOURS} />
              <FilterText name="mapping" word="Mapping" />
              <FilterText name="agent" word="Agent" />
              <FilterText name="session" word="Session" />
              <FilterText name="id" word="Id" placeholder="Any id" />
            </Filters>
            {rows.error.value !== undefined && (
              <TroubleNote error={rows.error.value} retry={() => void rows.reload()} />
            )}
            {items.length === 0 && rows.isLoading.value ? (
              <Skeleton rows={12} />
            ) : items.length === 0 && rows.error.value === undefined ? (
              isFiltered ? (
                <Empty title="No delivery matches these filters.">
                  <p class="muted">
                    The flight recorder stores the last <code>recorder.entries</code> deliveries; older ones are erased.
                  </p>
                </Empty>
              ) : (
                <FirstRequest isLive={isConsole.value} onSent={() => void rows.reload()} />
              )
            ) : (
              <LiveTable
                label="Requests, newest first"
                rows={rows}
                columns={COLUMNS}
                keyOf={({ delivery_id }) => delivery_id}
                hrefOf={({ delivery_id }) => hrefOf(`/d/${delivery_id}${location.search}`)}
                selected={delivery}
              />
            )}
          </>
        }
        inspector={
          delivery && (
            <Inspector
              key={delivery}
              id={delivery}
              back={back}
              row={items.find(({ delivery_id }) => delivery_id === delivery)}
            />
          )
        }
      />
    </>
  );
}

export default Page;
