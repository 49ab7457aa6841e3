import { useSignal } from "@preact/signals";
import { rest, rpc } from "#console/app/api.ts";
import { choiceOf, go, hrefOf, query } from "#console/app/router.ts";
import { mayRpc } from "#console/app/session.ts";
import { deliveryIn } from "#console/lib/case.ts";
import { ActionButton, FilterSelect, Filters, FilterText } from "#console/parts/fields.tsx";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { countOf, LiveTable } from "#console/parts/live-table.tsx";
import { Empty, PageHead } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { wordOf } from "#console/parts/state.tsx";
import { WORK_COLUMNS } from "#console/parts/work-row.tsx";
import type { DeliveryOutcome, DeliverySummary } from "#generated/clients/typescript/src/rest.ts";
import { FirstRequest } from "./first-request.tsx";
import { Inspector } from "./inspector.tsx";
import { ReplayAll } from "./replay-all.tsx";
import "./activity.css";

const SURFACES = [
  ["hooks", "Webhooks"],
  ["rest", "REST"],
  ["rpc", "RPC"],
  ["schedule", "Schedules"],
] as const;
const OUTCOMES = (
  [
    ...(["refused", "unmatched", "challenge", "repeated", "coalesced", "skipped", "missed"] as const),
    ...(["queued", "running", "completed", "failed", "cancelled", "handled", "dead", "gone"] as const),
  ] satisfies readonly DeliveryOutcome[]
).map((one) => [one, wordOf(one)] as const);
const REPLIES = [
  ["failed", "not delivered"],
  ["retrying", "retrying"],
  ["waiting", "waiting"],
  ["delivered", "delivered"],
] as const;
const HOURS = [
  ["1", "Last hour"],
  ["24", "Last day"],
  ["168", "Last week"],
] as const;
/** Other pages lead here with an id, which has no field of its own. */
const FILTERS = "outcome announcement hours surface agent mapping session channel id".split(" ");

/** The address's filters, as a query of the gateway. */
function queryOf(given: URLSearchParams) {
  const surface = choiceOf(given, "surface", SURFACES);
  const outcome = choiceOf(given, "outcome", OUTCOMES);
  const announcement = choiceOf(given, "announcement", REPLIES);
  const hours = Number(choiceOf(given, "hours", HOURS) ?? 0);
  const texts = (["mapping", "agent", "channel", "id"] as const).flatMap((name) => {
    const text = given.get(name);
    return text ? [[name, text] as const] : [];
  });
  const session = given.get("session");
  return {
    ...(Object.fromEntries(texts) as { [Name in "mapping" | "agent" | "channel" | "id"]?: string }),
    ...(surface && { surface }),
    ...(outcome && { outcome }),
    ...(announcement && { announcement }),
    ...(session && { session_id: session }),
    ...(hours > 0 && { from: new Date(Date.now() - hours * 3_600_000).toISOString() }),
  };
}

/** Says if a pushed row passes the filters. */
function isWanted(row: DeliverySummary, given: URLSearchParams): boolean {
  const { announcement, channel, id, from: _, ...same } = queryOf(given);
  return (
    Object.entries(same).every(([name, value]) => row[name as keyof typeof same] === value) &&
    (announcement === undefined || row.announcement?.state === announcement) &&
    (channel === undefined || row.announcement?.channel === channel) &&
    (id === undefined || idsOf(row).includes(id))
  );
}

function idsOf({ delivery_id, request_id, message_id, turn_id, event_id, session_id, sender_id }: DeliverySummary) {
  return [delivery_id, request_id, message_id, turn_id, event_id, session_id, sender_id];
}

async function readPage(page: { limit: number; before?: string }, signal: AbortSignal) {
  const { deliveries, next_cursor } = await rest().deliveries.list({ ...queryOf(query.peek()), ...page }, { signal });
  return { items: deliveries, cursor: next_cursor };
}

function keyOf({ delivery_id }: DeliverySummary) {
  return delivery_id;
}

/** The flight recorder: every inbound request, and its outcome. */
function Page({ params: { delivery } }: { params: Record<string, string> }) {
  const given = query.value;
  const filters = FILTERS.map((name) => given.get(name) ?? "").join("\n");
  const isReplaying = useSignal(false);
  const rows = useLiveRows<DeliverySummary>({
    keyOf,
    read: readPage,
    isKeyset: true,
    request: { gateway: null, deliveries: true },
    itemOf(push, isShown) {
      const row = deliveryIn(push);
      // A shown row changes in its place, also to an outcome that the filters do not let in.
      return row && (isShown(row.delivery_id) || isWanted(row, query.peek())) ? row : undefined;
    },
    keys: [filters],
    isReading: delivery !== undefined,
  });
  const list = rows.list.value;
  const { items } = list;
  const back = () => go(`/activity${location.search}`);
  const isFiltered = Object.keys(queryOf(given)).length > 0;
  const isEmpty = items.length === 0 && !rows.isLoading.value && rows.error.value === undefined;
  return (
    <>
      <PageHead title="Activity" count={countOf(list, "request")} of={rows}>
        {isFiltered && !isEmpty && delivery === undefined && (
          <ActionButton icon="rotate-ccw" onClick={() => (isReplaying.value = true)}>
            Replay all
          </ActionButton>
        )}
      </PageHead>
      <Split
        back={back}
        list={
          <>
            {(isFiltered || !isEmpty) && <ActivityFilters />}
            <LiveTable
              label="Requests, newest first"
              rows={rows}
              columns={WORK_COLUMNS}
              keyOf={keyOf}
              hrefOf={({ delivery_id }) => hrefOf(`/d/${delivery_id}${location.search}`)}
              selected={delivery}
              empty={
                isFiltered ? (
                  <Empty title="No request matches these filters.">
                    <p class="muted">
                      The flight recorder stores the last <code>recorder.entries</code> requests; older ones are
                      deleted.
                    </p>
                  </Empty>
                ) : (
                  <FirstRequest isLive={mayRpc.value} onSent={() => void rows.reload()} />
                )
              }
            />
          </>
        }
        inspector={
          delivery && (
            <Inspector key={delivery} id={delivery} back={back} row={items.find((row) => keyOf(row) === delivery)} />
          )
        }
      />
      {isReplaying.value && <ReplayAll query={queryOf(query.peek())} close={() => (isReplaying.value = false)} />}
    </>
  );
}

/** What a field can be filled with. Both lists are optional: a token may not read them. */
async function readNames() {
  const [agents, mappings] = await Promise.allSettled([rpc().agent.list(), rest().mappings.list()]);
  return {
    agents: agents.status === "fulfilled" ? agents.value.agents.map(({ agentName }) => agentName) : [],
    mappings: mappings.status === "fulfilled" ? mappings.value.mappings.map(({ name }) => name) : [],
  };
}

function ActivityFilters() {
  const names = useSignal<Awaited<ReturnType<typeof readNames>> | undefined>(undefined);
  const opened = async () => {
    names.value ??= await readNames();
  };
  const fields = {
    surface: <FilterSelect name="surface" word="Surface" values={SURFACES} />,
    agent: <FilterText name="agent" word="Agent" names={names.value?.agents} />,
    mapping: <FilterText name="mapping" word="Mapping" names={names.value?.mappings} />,
    session: <FilterText name="session" word="Session" />,
    channel: <FilterText name="channel" word="Channel" />,
  };
  return (
    <Filters names={FILTERS} more={{ fields, opened: () => void opened() }}>
      <FilterSelect name="outcome" word="Outcome" values={OUTCOMES} />
      <FilterSelect name="announcement" word="Reply" values={REPLIES} />
      <FilterSelect name="hours" word="When" values={HOURS} />
    </Filters>
  );
}

export default Page;
