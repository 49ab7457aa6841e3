import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { bindKeys } from "#console/app/keys.ts";
import { hrefOf, query, setQuery } from "#console/app/router.ts";
import { mayRpc, whyNot } from "#console/app/session.ts";
import { failing } from "#console/app/title.ts";
import { pathOfWork, type Work } from "#console/lib/live-stream.ts";
import { causeOfWork, troublesOf } from "#console/lib/troubles.ts";
import type { LiveRows } from "#console/parts/live-rows.ts";
import { Pill } from "#console/parts/live-table.tsx";
import { PageHead, Skeleton } from "#console/parts/page.tsx";
import { Segmented } from "#console/parts/segmented.tsx";
import { Table } from "#console/parts/table.tsx";
import { Failed, Note } from "#console/parts/trouble.tsx";
import { WORK_COLUMNS } from "#console/parts/work-row.tsx";
import { FirstRequest } from "../activity/first-request.tsx";
import { Agents, Figures, Refusals, Troubles } from "./summary.tsx";
import { Tail } from "./tail.tsx";
import { MOST_REFUSED, SHOWN, useNow, useWork } from "./use-live.ts";
import "./live.css";

const VIEWS = [
  ["list", "List"],
  ["tail", "Tail"],
] as const;
/** The time for which the ground of a new row fades. */
const ARRIVE_MS = 600;

/** The gateway at this moment: troubles on top, the agents, and the units of work as they come, as rows or as a log. */
function Page() {
  const isTail = query.value.get("view") === "tail";
  const isReading = useSignal(false);
  const { now, refused, error, reload } = useNow();
  const rows = useWork(isReading.value);
  const work = rows.list.value.items.slice(0, SHOWN);
  const troubles = now.value ? troublesOf(now.value, (agent) => causeOfWork(work, agent)) : [];
  const noAgents = whyNot("agent.list");
  const bad = troubles.filter(({ isBad }) => isBad).length;
  useEffect(() => {
    if (now.value) failing.value = bad;
  }, [bad, now.value !== undefined]);
  // Work that is there when the page opens does not arrive.
  const isSettled = useSignal(false);
  useEffect(() => {
    if (rows.isLoading.value) return undefined;
    const timer = setTimeout(() => (isSettled.value = true), ARRIVE_MS);
    return () => clearTimeout(timer);
  }, [rows.isLoading.value]);
  useEffect(() => {
    isReading.value = false;
    return bindKeys([{ key: "v", does: isTail ? "List" : "Tail", run: () => showTail(!isTail) }]);
  }, [isTail]);
  return (
    <>
      <PageHead title="Live" of={{ at: rows.at, reload: () => Promise.all([rows.reload(), reload()]) }}>
        <Segmented
          label="View"
          chosen={isTail ? "tail" : "list"}
          choose={(view) => showTail(view === "tail")}
          choices={VIEWS}
        />
      </PageHead>
      <Failed of={rows} />
      <Failed of={{ error, reload }} />
      {!isTail && <Troubles troubles={troubles} />}
      <div class={isSettled.value ? "arriving" : ""}>
        {isTail && <Tail rows={rows} isReading={isReading} failing={bad} />}
        {!isTail && (
          <>
            {noAgents !== undefined && <Note tone="warning">{noAgents}</Note>}
            {noAgents === undefined && now.value && <Agents agents={now.value.agents} />}
            {now.value && work.length > 0 && <Figures {...now.value} work={work} />}
            <Refusals refused={refused.value} most={MOST_REFUSED} />
            <Requests rows={rows} work={work} />
          </>
        )}
      </div>
    </>
  );
}

function showTail(isTail: boolean): void {
  setQuery({ view: isTail ? "tail" : "" });
}

function Requests({ rows, work }: { rows: LiveRows<Work>; work: readonly Work[] }) {
  const isEmpty = work.length === 0 && !rows.isLoading.value && rows.error.value === undefined;
  return (
    <section class="section" aria-labelledby="live-stream">
      <header>
        <h2 id="live-stream">Recent activity</h2>
        <div class="actions">
          <a href={hrefOf("/activity")}>All requests</a>
        </div>
      </header>
      {isEmpty ? (
        <FirstRequest isLive={mayRpc.value} onSent={() => void rows.reload()} />
      ) : work.length === 0 ? (
        <Skeleton rows={6} />
      ) : (
        <>
          <Pill rows={rows} />
          <Table
            label="The latest work"
            rows={work}
            columns={WORK_COLUMNS}
            keyOf={({ delivery_id }) => delivery_id}
            hrefOf={(one) => hrefOf(pathOfWork(one))}
          />
        </>
      )}
    </section>
  );
}

export default Page;
