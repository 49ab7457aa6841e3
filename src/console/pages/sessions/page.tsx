import { useSignal } from "@preact/signals";
import { go } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { countOf } from "#console/parts/live-table.tsx";
import { PageHead } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { Inspector } from "./inspector.tsx";
import { SessionList } from "./list.tsx";
import { TurnInspector } from "./turn.tsx";
import { useSessions } from "./use-sessions.ts";
import "./sessions.css";

function toList() {
  return go(`/sessions${location.search}`);
}

/** The stored conversations, each to read, to continue, to compact and to delete. */
function Page({ params: { session, turn } }: { params: Record<string, string> }) {
  const ofTurn = useSignal<string | undefined>(undefined);
  const inspector = turn ? (
    <TurnInspector key={turn} id={turn} back={toList} found={(of) => (ofTurn.value = of)} />
  ) : (
    session && <Inspector key={session} id={session} back={toList} />
  );
  // A turn is read by REST, where the sessions are not.
  const why = whyNot("session.list");
  if (why !== undefined)
    return (
      <>
        <PageHead title="Sessions" />
        <Split back={toList} list={<Note tone="warning">{why}</Note>} inspector={inspector} />
      </>
    );
  return <Live session={turn ? ofTurn.value : session} inspector={inspector} />;
}

function Live({ session, inspector }: { session: string | undefined; inspector: preact.ComponentChildren }) {
  const sessions = useSessions(inspector !== undefined);
  return (
    <>
      <PageHead
        title="Sessions"
        count={countOf(sessions.rows.list.value, "session")}
        updated={sessions.rows.at.value}
        refresh={() => void sessions.rows.reload()}
      />
      <Split back={toList} usual={34} list={<SessionList {...sessions} selected={session} />} inspector={inspector} />
    </>
  );
}

export default Page;
