import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rpc } from "#console/app/api.ts";
import { gathered, hold, whenHeld } from "#console/app/live.ts";
import { query } from "#console/app/router.ts";
import { merged, without } from "#console/lib/live-list.ts";
import { useLiveRows } from "#console/parts/live-rows.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

export type Row = RpcMethods["session.list"]["result"]["sessions"][number];
function keyOf({ sessionId }: Row) {
  return sessionId;
}

/** At most so many sessions are read by themselves at once; for more, its newest page is read. */
const MOST_READ = 12;

/** The sessions, newest first. One in which something happens changes in its place; a new one enters at the top. */
export function useSessions(isReading: boolean) {
  const names = useSignal<readonly string[]>([]);
  const agentsError = useSignal<unknown>(undefined);
  const following = useRef<Promise<unknown>>(undefined);
  // Runs before the effects of the list, so that the first page is read after the subscription to the agents has started.
  useEffect(() => {
    let release = () => {};
    let isLeft = false;
    const follow = async () => {
      const { agents } = await rpc().agent.list();
      names.value = agents.map(({ agentName }) => agentName);
      if (isLeft || agents.length === 0) return;
      const request = { agents: [...names.value] };
      release = hold(request);
      await whenHeld(request);
    };
    following.current = follow().catch((error) => (agentsError.value = error));
    return () => {
      isLeft = true;
      release();
    };
  }, []);
  const agent = query.value.get("agent") ?? "";
  const rows = useLiveRows<Row>({
    keyOf,
    async read(page, signal) {
      await following.current;
      const agentName = query.peek().get("agent");
      const asked = { ...page, ...(agentName && { agentName }) };
      const { sessions, nextCursor } = await rpc().session.list(asked, { signal });
      return { items: sessions, cursor: nextCursor };
    },
    request: { gateway: null },
    itemOf: () => undefined,
    keys: [agent],
    isReading,
  });

  const poll = async (ids: readonly string[]): Promise<void> => {
    if (ids.length > MOST_READ) return rows.catchUp();
    const found = await Promise.allSettled(ids.map((sessionId) => rpc().session.get({ sessionId, limit: 1 })));
    const wanted = query.peek().get("agent") ?? "";
    const news = found.flatMap((one) => (one.status === "fulfilled" ? [one.value.session] : []));
    const fitting = news.filter(({ agentName }) => wanted === "" || agentName === wanted);
    rows.list.value = merged(rows.list.peek(), fitting, { keyOf, isReading: isReading || scrollY > 80 });
  };

  useEffect(() => {
    return gathered(
      ({ method }) => /^(message\.c|turn|session)/.test(method),
      (pushes) => {
        const ids = new Set<string>();
        for (const { method, params } of pushes) {
          const { sessionId } = params as { sessionId?: string };
          if (sessionId === undefined) continue;
          if (method !== "session.deleted") ids.add(sessionId);
          else {
            ids.delete(sessionId);
            const { list } = rows;
            list.value = without(list.peek(), (row) => keyOf(row) === sessionId);
          }
        }
        void poll([...ids]);
      },
    );
  }, []);

  return { rows, names: names.value, agentsError };
}
