import { REST_KEY, readMetrics } from "./gateways.ts";

/** The work that a load starts: it counts only if all of it has ended within 2 s, because leaving it in a queue is not speed. */
export type Work = {
  /** The amount of ended work so far. */
  count(url: string): Promise<number>;
  /** Throws unless all accepted work, at least `least`, has ended successfully within 2 s. */
  requireEnded(url: string, least: number): Promise<void>;
};

export const ALL_ENDED_MS = 2_000;
const COMPLETED = 'gateway_turns_total{agent="main",status="completed"}';

/** The number of turns that a gateway has completed so far. */
export async function completedTurns(url: string): Promise<number> {
  return (await readMetrics(url))(COMPLETED);
}

/** The number of log lines that a gateway has dropped so far: without them it is faster. */
export async function droppedLines(url: string): Promise<number> {
  return (await readMetrics(url))("gateway_log_lines_dropped_total ");
}

/** Throws unless within 2 s nothing is queued or running, and as many turns have completed as were accepted. */
export async function requireEnded(url: string, accepted: number): Promise<void> {
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const read = await readMetrics(url);
    const [queued, running, completed] = [
      read("gateway_turns_queued "),
      read("gateway_turns_running "),
      read(COMPLETED),
    ];
    if (queued === 0 && running === 0 && completed >= accepted) return;
    if (performance.now() > end)
      throw new Error(`after 2 s ${queued} turns wait, ${running} run, ${completed} of ${accepted} have completed`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const TURNS: Work = { count: completedTurns, requireEnded };

const ACCEPTED = 'gateway_requests_total{surface="hooks",operation="hooks.wake",status="2xx"}';
const LOST = [
  ["refused", "gateway_events_refused_total"],
  ["given up", "gateway_events_died_total"],
  ["dead", "gateway_events_dead "],
] as const;

/** The requests that were in progress at the end, of at most 64 connections each: stored if the store is slow, and without an answer. */
const ON_THEIR_WAY = 2 * 64;

async function acceptedEvents(url: string): Promise<number> {
  return (await readMetrics(url))(ACCEPTED);
}

/** Waits until no event is waiting or in a turn. */
async function untilHandedOver(url: string): Promise<void> {
  const end = performance.now() + ALL_ENDED_MS;
  for (;;) {
    const queued = (await readMetrics(url))("gateway_events_queued ");
    if (queued === 0) return;
    if (performance.now() > end) throw new Error(`after 2 s ${queued} events wait`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Throws unless within 2 s nothing is waiting, and nothing was refused or has failed. */
export async function requireNoneLost(url: string): Promise<void> {
  await untilHandedOver(url);
  await requireNothingRefused(url);
}

async function requireNothingRefused(url: string): Promise<void> {
  const read = await readMetrics(url);
  for (const [name, metric] of LOST) {
    const lost = read(metric);
    if (lost > 0) throw new Error(`${lost} events were ${name}`);
  }
}

/** Throws unless within 2 s every accepted event was handled. Each is then read, which may take longer. */
async function requireHandled(url: string, least: number): Promise<void> {
  await requireNoneLost(url);
  const accepted = await acceptedEvents(url);
  if (accepted < least) throw new Error(`only ${accepted} of ${least} events were accepted`);
  const handled = await countEvents(url, "handled");
  if (handled < accepted || handled > accepted + ON_THEIR_WAY)
    throw new Error(`${accepted} events were accepted, and ${handled} handled`);
}

type EventPage = { events: { event_id: string; status: string }[]; next_cursor: string | null };

/** The number of events, with this status if one is given. */
async function countEvents(url: string, wanted?: string): Promise<number> {
  const found = new Set<string>();
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: EventPage = await readPage(url, cursor);
    for (const { event_id, status } of page.events) {
      if (wanted !== undefined && status !== wanted) throw new Error(`${event_id} is ${status}`);
      found.add(event_id);
    }
    cursor = page.next_cursor;
  }
  return found.size;
}

async function readPage(url: string, cursor: string): Promise<EventPage> {
  const query = new URLSearchParams({ limit: "500", ...(cursor !== "" && { cursor }) });
  const answer = await fetch(`${url}/api/v1/events?${query}`, { headers: { authorization: `Bearer ${REST_KEY}` } });
  if (answer.status !== 200) throw new Error(`/api/v1/events answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as EventPage;
}

/** Throws unless every accepted event exists, handled or waiting, and nothing was refused or has failed. */
async function requireKept(url: string, least: number): Promise<void> {
  await requireNothingRefused(url);
  const accepted = await acceptedEvents(url);
  if (accepted < least) throw new Error(`only ${accepted} of ${least} events were accepted`);
  const kept = await countEvents(url);
  if (kept < accepted || kept > accepted + ON_THEIR_WAY)
    throw new Error(`${accepted} events were accepted, and ${kept} are there`);
}

/** All accepted events are handled within 2 s. */
export const EVENTS: Work = { count: acceptedEvents, requireEnded: requireHandled };
/** All accepted events exist: the next heartbeat may be half an hour away. */
export const KEPT_EVENTS: Work = { count: acceptedEvents, requireEnded: requireKept };
