import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { exampleSchedule, stateOfRun, whenOf } from "#console/lib/schedules.ts";
import { Command } from "#console/parts/copy.tsx";
import { Empty, type Head, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago, Countdown } from "#console/parts/time.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { Schedule } from "#generated/clients/typescript/src/rest.ts";
import { ScheduleView } from "./schedule-view.tsx";
import { useSchedules } from "./use-schedules.ts";

const COLUMNS: readonly Column<Schedule>[] = [
  {
    name: "Schedule",
    narrow: "first",
    cell: ({ name, message, skill_id, last }) => {
      const words = last?.reason ?? message ?? `Skill ${skill_id}`;
      return (
        <span class="two-lines">
          <strong>{name}</strong>
          <span class={last?.outcome === "missed" ? "fault" : "faint"} title={words}>
            {words}
          </span>
        </span>
      );
    },
  },
  {
    name: "When",
    width: "24%",
    min: 132,
    cell: (schedule) => (
      <span class="two-lines">
        <span title={schedule.cron ?? undefined}>{whenOf(schedule)}</span>
        {schedule.cron !== null && <span class="faint">{schedule.time_zone}</span>}
      </span>
    ),
  },
  { name: "Agent", width: "14%", drop: 2, narrow: "none", cell: ({ agent }) => agent },
  {
    name: "Next run",
    width: "112px",
    align: "end",
    cell: ({ next, state }) =>
      state === "paused" ? (
        <State of="paused" quiet />
      ) : (
        <>
          <span class="narrow-word">next </span>
          <Countdown to={next[0]} over="now" />
        </>
      ),
  },
  {
    name: "Last run",
    width: "184px",
    align: "end",
    narrow: "first",
    cell: ({ last }) => (
      <>
        {last && <State of={stateOfRun(last)} quiet />}{" "}
        <span class="wide-word">
          <Ago at={last?.at} />
        </span>
      </>
    ),
  },
];

type TabOf = {
  /** The name of the schedule that is shown. */
  selected: string | undefined;
  head: Signal<Head | undefined>;
};

function toList() {
  return go("/schedules");
}

/** The schedules of the configuration, with their times and the results of their last runs. */
export function Schedules({ selected, head }: TabOf) {
  const loaded = useSchedules();
  const schedules = loaded.value.value;
  const count = schedules && schedules.length > 0 ? plural(schedules.length, "schedule") : undefined;
  useEffect(() => {
    head.value = { at: loaded.at, reload: loaded.reload, count };
  }, [count]);
  const shown = schedules?.find(({ name }) => name === selected);
  return (
    <>
      <Pending of={loaded} rows={4} />
      {schedules && (
        <Split
          back={toList}
          list={
            schedules.length === 0 ? (
              <FirstSchedule />
            ) : (
              <Table
                label="Schedules, in configuration order"
                rows={schedules}
                columns={COLUMNS}
                keyOf={({ name }) => name}
                hrefOf={({ name }) => hrefOf(`/schedules/${encodeURIComponent(name)}`)}
                selected={selected}
              />
            )
          }
          inspector={
            shown ? (
              <ScheduleView key={shown.name} schedule={shown} back={toList} reread={loaded.reload} />
            ) : (
              selected && <NoSchedule name={selected} />
            )
          }
        />
      )}
    </>
  );
}

function NoSchedule({ name }: { name: string }) {
  return (
    <Note tone="warning">
      <strong>
        No schedule is named <span class="mono">{name}</span>.
      </strong>
      <p>
        Schedules are configured in <code>schedules</code>. <a href={hrefOf("/schedules")}>All schedules</a>
      </p>
    </Note>
  );
}

/** How to configure the first schedule. */
function FirstSchedule() {
  const file = useLoaded(async (signal) => (await rest().config.get({ signal })).file).value.value;
  const name = file?.split("/").at(-1) ?? "the configuration file";
  return (
    <Empty title="No schedules are configured.">
      <p class="muted">
        A schedule sends a message to an agent, or triggers a skill, at fixed times. Add one to <code>{name}</code>:
      </p>
      <Command text={exampleSchedule(/\.ya?ml$/.test(name))} what="Copy the configuration" />
      <p class="muted">
        The gateway applies the change automatically. Cron, intervals, missed and overlapping runs:{" "}
        <a href="/docs/schedules.html" target="_blank" rel="noreferrer">
          Schedules
        </a>
      </p>
    </Empty>
  );
}
