import type { Health } from "#generated/rpc-types.ts";
import { type Clock, sleep } from "#kit/clock.ts";
import { GatewayError } from "#kit/errors.ts";
import type { AgentCounts, EventOrder, HealthPart, Store, StoreLimits } from "#store/store.ts";
import { type Agent, restMsOf } from "./agents/agents.ts";
import type { GatewayStream } from "./gateway-stream.ts";
import type { Heartbeat } from "./heartbeat/heartbeat.ts";
import type { SystemEvents } from "./heartbeat/system-events.ts";
import type { Keys } from "./keys.ts";
import { NOTIFY_PART } from "./outbox/endpoints.ts";
import type { Outbox } from "./outbox/outbox.ts";
import type { CoreParts } from "./parts.ts";
import { agesOf, type DatedToken, type EndingKey, isOld, needingAnother } from "./token-ages.ts";

const FRESH_MS = 250;
const PING_MS = 1_000;
/** The pause between its own looks: with followers, and without any, so that later followers find the changes, too. */
const FOLLOWED_BEAT_MS = 1_000;
const BEAT_MS = 5_000;

type HealthReport = Pick<Health, "status" | "parts" | "store" | "nodeId">;

type HealthParts = CoreParts & {
  gatewayStream: GatewayStream;
  systemEvents: SystemEvents;
  heartbeat: Heartbeat;
  keys: Keys;
  outbox: Outbox;
  /** Parts of the process: memory, the event loop. */
  process: () => readonly HealthPart[];
};

/** The health of the gateway, part by part. A check never fails. A change is reported on the gateway's stream. */
export function createHealth(parts: HealthParts) {
  const { node: nodeId, store, agents, clock, events, gatewayStream: stream } = parts;
  const ping = createPing(store, clock);
  let told = "";
  /** The degraded parts by the last notification, and the number of notifications. */
  let noted = "";
  let notes = 0;
  /** A change that may not be stored. */
  let unstored: { parts: string; eventId: string } | undefined;
  /** Changes are stored one after another. */
  let noting = Promise.resolve();
  /** The look that runs, or ran last. */
  let last: { freshUntil: number; report: Promise<HealthReport> } | undefined;
  let isClosed = false;
  let stopBeat = () => {};

  const takeSnapshot = async (): Promise<HealthReport> => {
    const { limits, datedTokens } = parts.settings();
    const all = [
      await storePart(store, ping, limits.store),
      queuePart(store, limits.store),
      eventsPart(store, limits.store, parts.systemEvents.refused()),
      ...parts.process(),
      ...agents.list().map((agent) => agentPart(store, agent, parts.heartbeat.delayedBy(agent.name))),
      ...parts.outbox.health(),
      ...tokenParts(datedTokens, clock.now()),
      ...keyParts(parts.keys.ending(), clock.now()),
    ];
    return { status: statusOf(all), parts: all, store: { type: store.kind, durable: store.durable }, nodeId };
  };

  /** Reports a change once. A report that could not be stored is repeated at the next check. */
  const tell = async ({ status, parts: all }: HealthReport): Promise<void> => {
    const degraded = all.filter((part) => part.status === "degraded");
    const now = degraded.map(({ name }) => name).join(" ");
    if (now === told || isClosed) return;
    const before = told;
    told = now;
    try {
      await stream.append({ name: "health.changed", nodeId, status, parts: degraded });
    } catch (error) {
      told = before;
      events.storeFailed({ operation: "appendGatewayEntry", error });
    }
  };

  /**
   * Notifies the endpoints of a change, unless only endpoints themselves changed: an endpoint that fails now and then would get a notification of each
   * notification. One that could not be stored is repeated at the next check, with the same id.
   */
  const note = async ({ parts: all }: HealthReport): Promise<void> => {
    const others = all.filter(({ name, status }) => status === "degraded" && !name.startsWith(NOTIFY_PART));
    const now = others.map(({ name }) => name).join(" ");
    if ((now === noted && !unstored) || isClosed) return;
    if (!parts.settings().policy.notify.some(({ events }) => events.includes("health.changed"))) {
      noted = now;
      unstored = undefined;
      return;
    }
    if (unstored?.parts !== now)
      unstored = { parts: now, eventId: `ntf_${nodeId.slice(nodeId.indexOf("_") + 1)}_${++notes}` };
    try {
      const data = JSON.stringify({ nodeId, status: statusOf(others), parts: others });
      await store.notifyEvent({ now: clock.now(), eventId: unstored.eventId, type: "health.changed", data });
      noted = now;
      unstored = undefined;
    } catch (error) {
      events.storeFailed({ operation: "notifyEvent", error });
    }
  };

  /** Many who ask at once share one look, and those who ask soon after it too. */
  const read = (): Promise<HealthReport> => {
    if (last && clock.monotonic() < last.freshUntil) return last.report;
    const snapshot = { freshUntil: Number.POSITIVE_INFINITY, report: takeSnapshot() };
    last = snapshot;
    snapshot.report.then(
      (report) => {
        snapshot.freshUntil = clock.monotonic() + FRESH_MS;
        void tell(report);
        noting = noting.then(() => note(report));
      },
      () => (snapshot.freshUntil = 0),
    );
    return snapshot.report;
  };

  const beat = () => {
    stopBeat = clock.after(stream.isFollowed ? FOLLOWED_BEAT_MS : BEAT_MS, () => {
      read().catch((error: unknown) => events.unexpectedError({ error, where: "health" }));
      beat();
    });
  };
  beat();

  return {
    /** The trouble of the store, if it has any: it is asked, and given a second. */
    storeTrouble: ping,
    read,
    close(): void {
      isClosed = true;
      stopBeat();
    },
  };
}

type Ping = () => Promise<string | undefined>;

const SILENT = "The store does not answer";
const UNTIL_IT_DOES = "new work is refused until it does";
const UNTIL_THERE_IS_ROOM = "work that does not fit is refused until there is space";

/** The trouble of a store that answered its ping with this error. No engine's own words: they may name its address. */
function storeTrouble(error: unknown): string {
  return GatewayError.from(error).name === "store-full" ? "The store's disk is full" : SILENT;
}

/** The trouble of the store, if it has any. A ping that hangs is asked once: others would hang behind it. */
function createPing(store: Store, clock: Clock): Ping {
  let pinging: Promise<string | undefined> | undefined;
  return async () => {
    pinging ??= store
      .ping()
      .then(() => undefined, storeTrouble)
      .finally(() => (pinging = undefined));
    const answered = new AbortController();
    const silent = sleep(clock, PING_MS, answered.signal).then(() => SILENT);
    return await Promise.race([pinging, silent]).finally(() => answered.abort());
  };
}

export function statusOf(parts: readonly HealthPart[]): HealthReport["status"] {
  return parts.some(({ status }) => status === "degraded") ? "degraded" : "ok";
}

const AGENT_PART = "agents.";

/** The agent of a part; undefined for another part. */
export function agentOfPart({ name }: HealthPart): string | undefined {
  return name.startsWith(AGENT_PART) ? name.slice(AGENT_PART.length) : undefined;
}

/** A part of health, with its fault if it has one. */
export function partOf(name: string, wrong: string | undefined): HealthPart {
  return {
    name,
    status: wrong === undefined ? "ok" : "degraded",
    detail: wrong ?? null,
  };
}

async function storePart(store: Store, ping: Ping, limits: StoreLimits): Promise<HealthPart> {
  const trouble = await ping();
  if (trouble) return partOf("store", `${trouble}: ${trouble === SILENT ? UNTIL_IT_DOES : UNTIL_THERE_IS_ROOM}.`);
  const { bytes, deliveryBytes } = store.stats();
  const isFull = bytes - deliveryBytes >= limits.storeBytes;
  return partOf(
    "store",
    isFull ? "The stored data has reached limits.storeBytes: delete sessions, or raise the limit." : undefined,
  );
}

function queuePart(store: Store, { turns }: StoreLimits): HealthPart {
  const { turnsQueued } = store.stats();
  return partOf(
    "queue",
    turnsQueued >= turns ? `${turnsQueued} turns wait, the maximum in limits.turns: new turns are refused.` : undefined,
  );
}

/** Reports past refusals even after the queue has room again. */
function eventsPart(store: Store, limits: EventOrder["limits"], refused: number): HealthPart {
  const { eventsQueued, eventsDead } = store.stats();
  const isFull = eventsQueued >= limits.events;
  const said = [
    isFull ? `${eventsQueued} events wait, the maximum in limits.events: new events are refused.` : "",
    refused > 0 ? `${refused} events were refused since the gateway started, because the limit was reached.` : "",
    eventsDead > 0 ? `Dead events: ${eventsDead}. List and replay them with GET /api/v1/events?status=dead.` : "",
  ].filter(Boolean);
  return { name: "events", status: isFull ? "degraded" : "ok", detail: said.join(" ") || null };
}

function agentPart(store: Store, agent: Agent, delayedBy: string | undefined): HealthPart {
  const { name } = agent;
  const counts = store.agentCounts(name);
  const restMs = restMsOf(agent);
  // While it is paused, the events of a beat that has begun wait, too.
  const isDelayed = delayedBy !== undefined && counts.pausedAt === undefined;
  const said = [
    counts.failing ? "The last turn failed; see backend.failed in the log." : "",
    restMs > 0 ? `The backend failed repeatedly and gets no requests for ${Math.ceil(restMs / 1_000)} s.` : "",
    isDelayed ? `The heartbeat cannot start a turn for the waiting events (${delayedBy}). It will retry.` : "",
  ].filter(Boolean);
  const wrong = partOf(AGENT_PART + name, said.join(" ") || undefined);
  const paused = pausedWords(counts);
  return paused === undefined ? wrong : { ...wrong, detail: [paused, ...said].join(" ") };
}

/** A paused agent is not degraded: its part is ok, and reports the waiting work. */
function pausedWords({ pausedAt, queued, waitingEvents }: AgentCounts): string | undefined {
  if (pausedAt === undefined) return undefined;
  const waiting = `${plural(queued, "turn")} and ${plural(waitingEvents, "event")} wait until it is resumed`;
  return `It has been paused since ${new Date(pausedAt).toISOString()}: ${waiting}.`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function tokenParts(tokens: readonly DatedToken[], now: number): HealthPart[] {
  if (tokens.length === 0) return [];
  const old = agesOf(tokens, now)
    .filter(isOld)
    .map(({ since }) => since);
  const wrong = `In use since ${old.join(" and ")}, more than 90 days: add a new token, then remove the old one.`;
  return [partOf("webhooks.token", old.length > 0 ? wrong : undefined)];
}

/** An expiring key is not a fault of the gateway: its part is ok, with the next step. */
function keyParts(keys: readonly EndingKey[], now: number): HealthPart[] {
  const sentenceOf = (isConfigured: boolean, advice: string): string[] => {
    const ending = needingAnother(keys).flatMap((key) => {
      if (key.isConfigured !== isConfigured) return [];
      const at = new Date(key.expiresAt).toISOString().slice(0, 10);
      return [`${key.name} ${key.expiresAt <= now ? "expired on" : "expires on"} ${at}`];
    });
    return ending.length === 0 ? [] : [`${ending.join(", ")}: ${advice}.`];
  };
  const said = [
    ...sentenceOf(false, "rotate it, and give its clients the new key"),
    ...sentenceOf(true, "change `expiresAt` in the configuration, or replace the key there"),
  ];
  return said.length === 0 ? [] : [{ name: "rest.keys", status: "ok", detail: said.join(" ") }];
}
