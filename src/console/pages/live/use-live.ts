import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rest, rpc } from "#console/app/api.ts";
import { now as clock } from "#console/app/clock.ts";
import { type AnyPush, gathered, onPush, onReturn, whenHeld } from "#console/app/live.ts";
import { whyNot } from "#console/app/session.ts";
import { deliveryIn } from "#console/lib/case.ts";
import { minuteOf, type Now, nowAfter } from "#console/lib/live-now.ts";
import { streamOf, type Work, workOfTurn } from "#console/lib/live-stream.ts";
import { useLiveRows } from "#console/parts/live-rows.ts";

/** The most units of work that the page reads and shows. */
export const SHOWN = 40;
/** The most refusals of the last hour that are counted. */
export const MOST_REFUSED = 50;
const HOUR_MS = 3_600_000;
const REQUEST = { gateway: null, deliveries: true } as const;
/**
 * The minimum time between two reads of the counts. They are read again after turns have started, after a heartbeat was due (a heartbeat without
 * events sends no push), and while turns run or wait (counts that are derived from pushes can drift).
 */
const COUNTS_EVERY_MS = 30_000;
const TURNS: ReadonlySet<string> = new Set(["delivery.recorded", "heartbeat.ran"]);
const RELOADS: ReadonlySet<string> = new Set(["agent.reloaded", "system.reloaded"]);

/** The push that brings a turn without a request, which is read when its heartbeat has ended. */
const TURN = "turn.read";

/** The units of work, from the newest on. */
export function useWork(isReading: boolean) {
  const rows = useLiveRows<Work>({
    keyOf: ({ delivery_id }) => delivery_id,
    async read(page, signal) {
      const [{ deliveries, next_cursor }, { turns }] = await Promise.all([
        rest().deliveries.list({ ...page, limit: SHOWN }, { signal }),
        rest().turns.list({ limit: SHOWN }, { signal }),
      ]);
      return { items: streamOf(deliveries, turns, SHOWN), cursor: next_cursor };
    },
    request: REQUEST,
    itemOf: workIn,
    keys: [],
    isReading,
  });
  useEffect(
    () =>
      onPush(async ({ method, params }) => {
        if (method !== "heartbeat.ran" || document.hidden) return;
        for (const id of params.turnIds as string[]) {
          const turn = await rest()
            .turns.get(id)
            .catch(() => undefined);
          if (turn) rows.add([{ method: TURN, params: { work: workOfTurn(turn) } }]);
        }
      }),
    [],
  );
  return rows;
}

function workIn({ method, params }: AnyPush): Work | undefined {
  return method === TURN ? (params as { work: Work }).work : deliveryIn({ method, params });
}

/** The state of the gateway. Parts that the token may not read are empty. */
async function readNow(): Promise<Now> {
  const [counts, { parts }] = await Promise.all([
    readCounts(),
    whyNot("system.health") ? { parts: [] } : rpc().system.health(),
  ]);
  return { ...counts, parts, outcomes: new Map() };
}

/** Reads the counts of agents and turns. Pushes do not update the turns of the last hour, because they come from all gateways on the same database. */
async function readCounts(): Promise<Pick<Now, "agents" | "turns" | "minute">> {
  const [{ agents }, { turnsPerMinute }] = await Promise.all([
    whyNot("agent.list") ? { agents: [] } : rpc().agent.list(),
    whyNot("system.info") ? { turnsPerMinute: [] } : rpc().system.info(),
  ]);
  return { agents, turns: turnsPerMinute, minute: minuteOf(Date.now()) };
}

async function readRefused(): Promise<Work[]> {
  const from = new Date(Date.now() - HOUR_MS).toISOString();
  return (await rest().deliveries.list({ outcome: "refused", from, limit: MOST_REFUSED })).deliveries;
}

/** The state of the gateway and the refusals of the last hour: read once, then updated by pushes. */
export function useNow() {
  const now = useSignal<Now | undefined>(undefined);
  const refused = useSignal<readonly Work[]>([]);
  const error = useSignal<unknown>(undefined);
  const recent = useComputed(() => {
    const from = new Date(clock.value - HOUR_MS).toISOString();
    return refused.value.filter(({ at }) => at >= from);
  });
  const reload = async () => {
    try {
      now.value = await readNow();
      if (!whyNot("rest")) refused.value = await readRefused();
      error.value = undefined;
    } catch (thrown) {
      error.value = thrown;
    }
  };
  useEffect(() => {
    let readAt = Date.now();
    let isRead = false;
    let hasTurns = false;
    const reloadCounts = async () => {
      readAt = Date.now();
      hasTurns = false;
      const counts = await readCounts();
      if (now.value) now.value = { ...now.value, ...counts };
    };
    const take = (pushes: AnyPush[]) => {
      if (!now.value) return;
      now.value = pushes.reduce((state, push) => nowAfter(state, push), now.value);
      hasTurns ||= pushes.some(({ method }) => TURNS.has(method));
      const more = pushes.flatMap((push) => workIn(push) ?? []).filter(({ outcome }) => outcome === "refused");
      if (more.length > 0) refused.value = [...more.reverse(), ...refused.value].slice(0, MOST_REFUSED);
      if (pushes.some(({ method }) => RELOADS.has(method))) void reloadCounts().catch(() => {});
    };
    const isOld = (at: number) =>
      now.value?.agents.some(
        ({ running, queued, heartbeat: { nextAt } }) =>
          running + queued > 0 || (nextAt !== null && Date.parse(nextAt) < at - 1_000),
      );
    const stops = [
      gathered(({ method }) => !method.startsWith("message."), take),
      onReturn(() => isRead && void reload()),
      clock.subscribe((at) => {
        if (at - readAt > COUNTS_EVERY_MS && (hasTurns || isOld(at))) void reloadCounts().catch(() => {});
      }),
    ];
    void whenHeld(REQUEST).then(() => {
      isRead = true;
      return reload();
    });
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
  return { now, refused: recent, error, reload };
}
