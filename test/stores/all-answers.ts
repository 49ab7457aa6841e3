import type { Store, UsageCount } from "#store/store.ts";

/** All answers of a store, as JSON: they are the same after a newer version has opened its file. */
export async function allAnswers(store: Store): Promise<unknown> {
  const all = { from: 0, to: Number.MAX_SAFE_INTEGER };
  const page = { limit: 100 };
  const withCalls = { ...page, includeToolCalls: true };
  const sessions = (await store.listSessions(page)).items;
  const turns = (await store.listTurns(page)).items;
  const events = (await store.listEvents(page)).items;
  const deliveries = (await store.listDeliveries(page)).items;
  const agents = [...new Set(sessions.map(({ agent }) => agent))].sort();
  const queued = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 100, bytes: 1e9 };
  const answers = {
    stats: store.stats(),
    sessions,
    turns: await Promise.all(turns.map(({ turnId }) => store.getTurn(turnId))),
    events,
    deliveries: await Promise.all(deliveries.map(({ deliveryId }) => store.getDelivery(deliveryId))),
    listed: deliveries,
    journals: await Promise.all(
      sessions.map(({ sessionId }) => store.readEntries(sessionId, { after: 0, limit: 100 })),
    ),
    messages: await Promise.all(sessions.map(({ sessionId }) => store.readMessages(sessionId, withCalls))),
    summaries: await Promise.all(sessions.map(({ sessionId }) => store.readSummary(sessionId))),
    agents: agents.map((agent) => store.agentCounts(agent)),
    beats: await Promise.all(agents.map((agent) => store.readBeat(agent))),
    waiting: await Promise.all(agents.map((agent) => store.readQueuedEvents({ ...queued, agent }))),
    stream: await store.readGatewayEntries({ after: 0, limit: 100 }),
    keys: await store.listKeys(),
    usage: (await store.readUsage(all)).sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    replay: (await store.findReplay({ key: "k1", hash: "hash" }, 1))?.turn.turnId,
  };
  return JSON.parse(JSON.stringify(answers));
}

function keyOf({ hour, agent, model, surface, caller }: UsageCount): string {
  return JSON.stringify([hour, agent, model, surface, caller]);
}
