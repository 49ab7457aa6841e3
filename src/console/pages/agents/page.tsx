import { useSignal } from "@preact/signals";
import { go, path } from "#console/app/router.ts";
import { type Head, PageHead } from "#console/parts/page.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { Agents } from "./agents-tab.tsx";
import { Schedules } from "./schedules-tab.tsx";
import "./agents.css";

/** The agents, and the schedules that start their turns. */
function Page({ params: { agent, schedule } }: { params: Record<string, string> }) {
  const head = useSignal<Head | undefined>(undefined);
  const open = path.value.startsWith("/schedules") ? "schedules" : "agents";
  return (
    <>
      <PageHead title="Agents" count={head.value?.count} of={head.value} />
      <Tabs
        label="Parts of Agents"
        open={open}
        onOpen={(id) => {
          if (id !== open) head.value = undefined;
          go(`/${id}`, { replace: true });
        }}
        tabs={[
          { id: "agents", name: "Agents", body: () => <Agents selected={agent} head={head} /> },
          { id: "schedules", name: "Schedules", body: () => <Schedules selected={schedule} head={head} /> },
        ]}
      />
    </>
  );
}

export default Page;
