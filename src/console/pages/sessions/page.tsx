import { useEffect } from "preact/hooks";
import { rpc } from "#console/app/api.ts";
import { bindKeys } from "#console/app/keys.ts";
import { go, hrefOf, query } from "#console/app/router.ts";
import { isConsole, RPC_REASON } from "#console/app/session.ts";
import { count, plural } from "#console/lib/format.ts";
import { Command } from "#console/parts/copy.tsx";
import { FilterSelect, Filters } from "#console/parts/fields.tsx";
import { useLiveRows } from "#console/parts/live-rows.ts";
import { Empty, PageHead, Skeleton } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { type Column, More, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import { Note, TroubleNote } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/rpc.ts";
import { SessionView } from "./session-view.tsx";
import { TurnView } from "./turn-view.tsx";

type Session = RpcMethods["session.list"]["result"]["sessions"][number];

const COLUMNS: readonly Column<Session>[] = [
  { name: "Session", narrow: "first", cell: ({ sessionId }) => <span class="mono">{sessionId}</span> },
  { name: "Agent", width: "110px", narrow: "first", cell: ({ agentName }) => agentName },
  { name: "User", width: "110px", narrow: "none", cell: ({ userId }) => userId ?? <span class="faint">–</span> },
  { name: "Messages", width: "88px", align: "end", narrow: "none", cell: ({ messageCount }) => count(messageCount) },
  { name: "Tokens", width: "80px", align: "end", narrow: "none", cell: ({ usage }) => count(usage.total) },
  { name: "Updated", width: "88px", align: "end", cell: ({ updatedAt }) => <Ago at={updatedAt} /> },
];

/** Conversations: each with its messages as they come. */
const Page = ({ params: { session, turn } }: { params: Record<string, string> }) => {
  if (!isConsole.value && !turn)
    return (
      <>
        <PageHead title="Sessions" />
        <Note tone="warning">{RPC_REASON}</Note>
      </>
    );
  return isConsole.value ? <Sessions session={session} turn={turn} /> : <TurnOnly turn={turn ?? ""} />;
};

const TurnOnly = ({ turn }: { turn: string }) => (
  <>
    <PageHead title="Sessions" />
    <TurnView id={turn} back={() => go("/activity")} />
  </>
);

const Sessions = ({ session, turn }: { session: string | undefined; turn: string | undefined }) => {
  const agents = useLoaded(() => rpc().agent.list());
  const rows = useLiveRows<Session>({
    keyOf: ({ sessionId }) => sessionId,
    async read(cursor) {
      const agentName = query.peek().get("agent");
      const page = await rpc().session.list({
        limit: 50,
        ...(agentName && { agentName }),
        ...(cursor !== undefined && { cursor }),
      });
      return { items: page.sessions, cursor: page.nextCursor };
    },
    request: {},
    itemOf: () => undefined,
    keys: [query.value.get("agent")],
    isReading: session !== undefined || turn !== undefined,
  });
  const back = () => go(`/sessions${location.search}`);
  useEffect(() => bindKeys([{ key: "Escape", does: "Back to the list", run: back }]), []);
  const { items, hasMore } = rows.list.value;
  const names = agents.value.value?.agents.map(({ agentName }) => agentName) ?? [];
  return (
    <>
      <PageHead
        title="Sessions"
        count={items.length > 0 ? plural(items.length, "session") + (hasMore ? " and more" : "") : undefined}
        updated={rows.at.value}
        refresh={() => void rows.reload()}
      />
      <Split
        list={
          <>
            <Filters names={["agent"]}>
              <FilterSelect name="agent" word="Agent" values={names.map((name) => [name, name] as const)} />
            </Filters>
            {rows.error.value !== undefined && (
              <TroubleNote error={rows.error.value} retry={() => void rows.reload()} />
            )}
            {items.length === 0 && rows.isLoading.value ? (
              <Skeleton rows={10} />
            ) : items.length === 0 && rows.error.value === undefined ? (
              <Empty title={query.value.has("agent") ? "This agent has no session." : "There is no session yet."}>
                <p class="muted">Sending a message opens one:</p>
                <Command
                  text={`curl ${location.origin}/api/v1/chat/send -H "Authorization: Bearer $REST_API_KEY" -H 'Content-Type: application/json' -d '{"message":"Hello","user_id":"ada"}'`}
                />
              </Empty>
            ) : (
              <Table
                label="Sessions, the latest first"
                rows={items}
                columns={COLUMNS}
                keyOf={({ sessionId }) => sessionId}
                hrefOf={({ sessionId }) => hrefOf(`/s/${encodeURIComponent(sessionId)}${location.search}`)}
                selected={session}
              />
            )}
            {hasMore && items.length > 0 && <More read={rows.more} isLoading={rows.isLoading.value} />}
          </>
        }
        inspector={
          session ? (
            <SessionView key={session} id={session} back={back} changed={() => void rows.reload()} />
          ) : turn ? (
            <TurnView key={turn} id={turn} back={back} />
          ) : undefined
        }
      />
    </>
  );
};

export default Page;
