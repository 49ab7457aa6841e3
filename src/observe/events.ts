import type { Level, Logger } from "#observe/logger.ts";
import type { Registry } from "#observe/metrics.ts";
import { createRepeats } from "#observe/repeats.ts";

type Surface = "rest" | "rpc" | "hooks" | "public";

/** One access line: every request that was answered, whatever the answer. */
interface RequestHandled {
  surface: Surface;
  /** The operation or method; `unknown` where there is none, never what the caller wrote. */
  operation: string;
  /** The beginning of the path, where nothing is at it; without its query. */
  path?: string | undefined;
  status: number;
  ms: number;
  requestId: string;
  traceId?: string | undefined;
  /** The name of the token or key. */
  caller?: string | undefined;
  /** The error's name in the contract. */
  error?: string | undefined;
  turnId?: string | undefined;
}

/** One call or batch over a WebSocket. The members that only its line has are read when that is written. */
interface SocketCall {
  readonly outcome: { operation: string; error: string | undefined; turnId: string | undefined; changes: boolean };
  readonly requestId: string;
  readonly callerName: string;
}

interface TurnRun {
  agent: string;
  turnId: string;
  attempt: number;
  sessionId?: string | undefined;
}

/** An attempt to announce a reply. */
interface Announced {
  channel: string;
  turnId: string;
  outcome: "delivered" | "retried" | "failed" | "returned";
  attempt: number;
  reason: string | undefined;
}

/** The usage of an attempt; one that wrote a summary, too. */
interface AttemptUsed {
  agent: string;
  /** The model that answered, by one of few names. */
  model: string;
  /** Tokens. Most attempts have nothing of `more`; `cost` is in billionths. */
  usage: {
    input: number;
    output: number;
    more?: { cached: number; reasoning: number; cost: number } | undefined;
  };
}

/** The events that count one, by the values of their labels, and write their line; with the fields of that. */
interface Counted {
  socketOpened: { requestId: string; caller: string; address: string };
  /** It let too much pile up, for too long. */
  socketCut: { requestId: string; caller: string };
  /** `by` is the close code of ours, or `peer` where the other side left. */
  socketClosed: { requestId: string; caller: string; by: string; ms: number };
  turnRetried: TurnRun & { delayMs: number; reason?: string };
  /** Its lease ended while it ran here, as the process or the store stood still: its end was thrown away, and it runs again. */
  turnLost: TurnRun;
  backendFailed: { agent: string; turnId: string; error: unknown };
  /** A line that a program of an agent or a server of tools wrote to standard error. */
  programSaid: { program: string; line: string; turnId?: string | undefined; unheard?: number | undefined };
  /** A server of tools could not be started or reached: turns go on without its tools. */
  toolsUnavailable: { server: string; reason: string };
  sessionCompacted: {
    sessionId: string;
    agent: string;
    cause: "asked" | "size";
    before: Size;
    after: Size;
    ms: number;
  };
  /** One that nobody asked for: the session goes on uncompacted. */
  compactionFailed: { sessionId: string; agent: string; error: unknown };
  /** Nothing was stored, and the caller was told: no room. */
  eventRefused: { reason: string };
  /** The next turn of a beat could not be started, and is tried again. */
  beatDelayed: { agent: string; reason: string; delayMs: number };
  usageUnknown: { agent: string };
  /** The wall clock jumped, so that nothing is erased by its age for now. */
  retentionPaused: { byMs: number };
  /** Nothing was stored, and the caller was told. The access line has the rest. */
  workRefused: { reason: string; surface?: Surface; requestId?: string };
  /** The whole error, with its stack, goes to the log and nowhere else. */
  unexpectedError: { error: unknown; requestId?: string; where?: string };
  configReloaded: { cause: string; changed: readonly string[]; needRestart?: readonly string[] };
  /** The last good configuration goes on. */
  configRefused: { cause: string; problems: unknown };
  /** Something that works and should be otherwise: a short secret, a store that forgets. */
  configWarned: { about: string; detail: string };
  skillRefused: { skill: string; reason: string };
  keyCreated: { keyId: string; name: string; caller: string; replaces?: string };
  keyRevoked: { keyId: string; name?: string; caller: string };
  acceptPaused: { reason: string };
}
type Size = { messages: number; tokens: number };

type Row<Fields> = readonly [level: Level, line: string, metric: string, help: string, ...labels: (keyof Fields)[]];

/** Their lines, and their metrics: `gateway_<metric>_total`. */
const COUNTED: { [Name in keyof Counted]: Row<Counted[Name]> } = {
  socketOpened: ["info", "socket.opened", "sockets_opened", "WebSockets opened."],
  socketCut: ["warn", "socket.cut", "sockets_cut", "WebSockets closed because the client read too slowly."],
  socketClosed: ["info", "socket.closed", "sockets_closed", "WebSockets closed, by close code.", "by"],
  turnRetried: ["warn", "turn.retried", "turn_retries", "Attempts of turns that failed and are retried.", "agent"],
  turnLost: [
    "warn",
    "turn.lost",
    "turns_lost",
    "Attempts whose lease expired before their result was stored.",
    "agent",
  ],
  backendFailed: [
    "warn",
    "backend.failed",
    "backend_failures",
    "Attempts that failed because of the backend.",
    "agent",
  ],
  programSaid: ["info", "program.said", "program_lines", "Lines that programs wrote to standard error.", "program"],
  toolsUnavailable: [
    "warn",
    "tools.unavailable",
    "tool_server_failures",
    "Failures of tool servers: not started, not reached, or not responding.",
    "server",
  ],
  sessionCompacted: ["info", "session.compacted", "compactions", "Compactions of sessions.", "agent", "cause"],
  compactionFailed: ["warn", "compaction.failed", "compaction_failures", "Automatic compactions that failed.", "agent"],
  eventRefused: [
    "debug",
    "event.refused",
    "events_refused",
    "System events refused because a limit was reached.",
    "reason",
  ],
  beatDelayed: [
    "warn",
    "beat.delayed",
    "beat_delays",
    "Heartbeats whose turn could not be started and was delayed.",
    "reason",
  ],
  usageUnknown: ["debug", "usage.unknown", "usage_unknown", "Attempts without reported token usage.", "agent"],
  retentionPaused: ["warn", "retention.paused", "retention_pauses", "Jumps of the wall clock by more than an hour."],
  workRefused: ["debug", "work.refused", "work_refused", "Work refused because of a limit or a shutdown.", "reason"],
  unexpectedError: ["error", "unexpected.error", "unexpected_errors", "Unexpected errors."],
  configReloaded: ["info", "config.reloaded", "config_reloads", "Configurations applied."],
  configRefused: ["error", "config.refused", "config_refusals", "Configurations refused."],
  configWarned: ["warn", "config.warned", "config_warnings", "Warnings about the configuration."],
  skillRefused: ["warn", "skill.refused", "skills_refused", "Skill folders that were refused."],
  keyCreated: ["info", "key.created", "keys_created", "REST keys created."],
  keyRevoked: ["info", "key.revoked", "keys_revoked", "REST keys revoked."],
  acceptPaused: ["error", "accept.paused", "accept_pauses", "Pauses in accepting new connections.", "reason"],
};

/** Learns of turns that ended here, and of attempts to announce a reply, after they are stored. */
export type TurnFollower = { turnEnded(turnId: string): void; announced(turnId: string): void };

type EventsParts = { logger: Logger; registry: Registry; followers?: ReadonlySet<TurnFollower> };

const BILLION = 1_000_000_000;

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

/**
 * The business events: each is one log line and one count, in one call. Labels have few values; ids go to the line only.
 * No event throws or waits.
 */
export function createEvents({ logger, registry, followers = new Set() }: EventsParts) {
  const { log } = logger;
  const count = (name: string, help: string, ...labels: readonly string[]) =>
    registry.counter(`gateway_${name}_total`, help, labels);
  const time = (name: string, help: string, ...labels: readonly string[]) =>
    registry.histogram(`gateway_${name}_seconds`, help, labels);

  const counted = Object.entries(COUNTED as Record<string, Row<Record<string, unknown>>>).map(
    ([name, [level, line, metric, help, ...labels]]) => {
      const family = count(metric, help, ...labels);
      const tell = (fields: Record<string, unknown>): void => {
        family.at(...labels.map((label) => String(fields[label]))).inc();
        log(level, line, fields);
      };
      return [name, tell];
    },
  );

  const requests = count("requests", "Requests answered.", "surface", "operation", "status");
  const requestSeconds = time(
    "request_duration",
    "From the request's head to the end of its reply.",
    "surface",
    "operation",
  );
  const errors = count("errors", "Requests answered with an error of the contract.", "surface", "error");
  const turnsStarted = count("turns_started", "Attempts to run a turn.", "agent");
  const turns = count("turns", "Turns that ended, by agent and status.", "agent", "status");
  const turnSeconds = time("turn_duration", "A turn's last attempt, from its start to its end.", "agent");
  const waitSeconds = time("turn_wait", "How long a turn was queued before an attempt.", "agent");
  const connectionsRefused = count(
    "connections_refused",
    "Connections closed at once, as their address held too many.",
  );
  const authFailures = count("auth_failures", "Requests without a token that is good here.", "surface");
  registry.read(
    "counter",
    "gateway_log_lines_dropped_total",
    "Log lines dropped as their reader was too slow.",
    logger.dropped,
  );

  const announcements = count(
    "announcements",
    "Attempts to announce a reply, by how they ended.",
    "channel",
    "outcome",
  );

  const spansLost = count("spans_dropped", "Spans of traces that no collector got.", "reason");
  const died = count("events_died", "System events given up.", "agent");
  const beats = count("beats", "Heartbeats, with events and without.", "agent");
  const byModel = ["agent", "model"] as const;
  const inputs = count("input_tokens", "Tokens that models read.", ...byModel);
  const outputs = count("output_tokens", "Tokens that models wrote.", ...byModel);
  const cached = count("cached_tokens", "Of the input, what models had read before.", ...byModel);
  const reasoning = count("reasoning_tokens", "Of the output, what no reader sees.", ...byModel);
  /** In whole billionths, as sums of anything else would drift. No model but those with a price is in it. */
  const costs = new Map<string, { labels: { agent: string; model: string }; cost: number }>();
  registry.read("counter", "gateway_cost_total", "What attempts cost by the prices of their models.", () =>
    [...costs.values()].map(({ labels, cost }) => ({ labels, value: cost / BILLION })),
  );
  const storeFailures = count("store_failures", "Calls to the store that failed.", "operation");
  const storeTroubles = createRepeats(({ names, ...ended }) =>
    log("info", "store.settled", { operations: names, ...ended }),
  );

  const countRequest = (surface: Surface, operation: string, status: number, ms: number, error?: string): void => {
    requests.at(surface, operation, `${Math.trunc(status / 100)}xx`).inc();
    requestSeconds.at(surface, operation).observe(ms / 1000);
    if (error !== undefined) errors.at(surface, error).inc();
  };

  return {
    ...(Object.fromEntries(counted) as { [Name in keyof Counted]: (fields: Counted[Name]) => void }),
    requestHandled: (request: RequestHandled): void => {
      const { surface, operation, status, ms, error } = request;
      countRequest(surface, operation, status, ms, error);
      request.ms = rounded(ms);
      log("info", "request", request);
    },
    /** A call over a WebSocket. All are counted; one that changed something or failed has a line, the others only at `debug`. */
    socketCallHandled: (call: SocketCall, ms: number): void => {
      const { operation, error, turnId, changes } = call.outcome;
      countRequest("rpc", operation, 200, ms, error);
      const level = changes || error !== undefined ? "info" : "debug";
      if (!logger.writes(level)) return;
      const { requestId, callerName: caller } = call;
      const facts = { surface: "rpc", transport: "websocket", operation, status: 200, ms: rounded(ms) };
      log(level, "request", { ...facts, requestId, caller, error, turnId });
    },
    turnStarted: (turn: TurnRun & { queuedMs: number }): void => {
      turnsStarted.at(turn.agent).inc();
      waitSeconds.at(turn.agent).observe(turn.queuedMs / 1000);
      log("debug", "turn.started", turn);
    },
    turnEnded: (turn: TurnRun & { outcome: "completed" | "failed" | "cancelled"; ms: number }): void => {
      turns.at(turn.agent, turn.outcome).inc();
      turnSeconds.at(turn.agent).observe(turn.ms / 1000);
      // One that went well is told by its request's line, the journal and the counters.
      const level = turn.outcome === "failed" ? "warn" : turn.outcome === "cancelled" ? "info" : "debug";
      if (logger.writes(level)) log(level, "turn.ended", { ...turn, ms: rounded(turn.ms) });
      for (const follower of followers) follower.turnEnded(turn.turnId);
    },
    /** Turns that waited for an agent that left the configuration have failed. */
    turnsGivenUp: (given: { agent: string; count: number }) => log("warn", "turns.given-up", given),
    agentPaused: (paused: { agent: string; caller: string }) => log("info", "agent.paused", paused),
    agentResumed: (resumed: { agent: string; caller: string }) => log("info", "agent.resumed", resumed),
    /** `retried` will be tried again, `failed` will not, `returned` goes on where the gateway does. */
    announced: (attempt: Announced): void => {
      const { channel, outcome } = attempt;
      announcements.at(channel, outcome).inc();
      const level = outcome === "delivered" ? "debug" : outcome === "returned" ? "info" : "warn";
      log(level, `announcement.${outcome}`, attempt);
      if (outcome !== "returned") for (const follower of followers) follower.announced(attempt.turnId);
    },
    /** Announcements that were not delivered when the gateway stopped. If they are `stored`, the next start delivers them. */
    announcementsLeft: ({ left, stored }: { left: number; stored: boolean }): void =>
      log(stored ? "info" : "warn", "announcements.left", { left, stored }),
    /** No room is told by the counter alone: it would be a line for each turn. */
    spansDropped: (dropped: { reason: "queue" | "collector"; count: number; detail: string }): void => {
      spansLost.at(dropped.reason).inc(dropped.count);
      log(dropped.reason === "queue" ? "debug" : "warn", "spans.dropped", dropped);
    },
    eventDead: (dead: { eventId: string; agent: string; attempts: number; turnId: string; reason: string }): void => {
      died.at(dead.agent).inc();
      log("warn", "event.dead", dead);
    },
    /** Nobody is there to handle them: their agent left the configuration, or the gateway stops with a store that forgets. */
    eventsGivenUp: (given: { agent: string; count: number; reason: string }): void => {
      died.at(given.agent).inc(given.count);
      log("warn", "events.given-up", given);
    },
    beatRan: (beat: { agent: string; events: number; turns: number; returned: number; ms: number }): void => {
      beats.at(beat.agent).inc();
      log(beat.events > 0 ? "info" : "debug", "beat.ran", beat);
    },
    /** An attempt that reached a backend, whatever became of it; one that wrote a summary, too. */
    attemptUsed: (attempt: AttemptUsed): void => {
      const { agent, model, usage } = attempt;
      const { more } = usage;
      inputs.at(agent, model).inc(usage.input);
      outputs.at(agent, model).inc(usage.output);
      log("debug", "attempt.used", attempt);
      if (!more) return;
      if (more.cached > 0) cached.at(agent, model).inc(more.cached);
      if (more.reasoning > 0) reasoning.at(agent, model).inc(more.reasoning);
      if (more.cost === 0) return;
      const key = `${agent}\n${model}`;
      const known = costs.get(key) ?? { labels: { agent, model }, cost: 0 };
      known.cost += more.cost;
      costs.set(key, known);
    },
    /** Counted always. A lasting failure has a line now and then, with the count of the unlogged ones, and a line at its end. */
    storeFailed: ({ operation, error }: { operation: string; error: unknown }): void => {
      storeFailures.at(operation).inc();
      const suppressed = storeTroubles(operation, error instanceof Error ? `${error.name}: ${error.message}` : "");
      if (suppressed !== undefined)
        log("error", "store.failed", { operation, error, ...(suppressed > 0 && { suppressed }) });
    },
    retentionResumed: ({ byMs }: { byMs: number }): void => log("info", "retention.resumed", { byMs }),
    /** The engine reports what it did by itself: its database is gone or back, it migrated, repaired or took something over. */
    storeNoticed: ({ name, detail }: { name: string; detail: string }): void =>
      log(["unavailable", "repaired", "exposed"].includes(name) ? "warn" : "info", `store.${name}`, { detail }),
    /** Counted always; `logged` says whether it gets a line, as somebody who guesses must not fill the log. */
    authFailed: ({
      logged,
      ...attempt
    }: {
      surface: Surface;
      address?: string;
      /** As the contract has it where a stranger may have written anything. */
      path?: string | undefined;
      mapping?: string | undefined;
      requestId?: string;
      logged: boolean;
    }): void => {
      authFailures.at(attempt.surface).inc();
      if (logged) log("warn", "auth.failed", attempt);
    },
    /** Such connections come in floods: each is counted, and a line is written now and then. */
    connectionRefused: ({ address, logged }: { address: string; logged: boolean }): void => {
      connectionsRefused.at().inc();
      if (logged) log("warn", "connection.refused", { address });
    },
    /** A REST key that ends soon, or has just ended; told once a day. */
    keyExpiring: ({ isConfigured, ...fields }: { name: string; expiresAt: string; isConfigured: boolean }): void =>
      log("warn", "key.expiring", {
        ...fields,
        detail: isConfigured
          ? "Change its expiresAt in the configuration, or put another key in its place there."
          : "Rotate it on the console's settings page.",
      }),
    /** A webhook token that should be replaced; told once a day. */
    webhookTokenOld: (fields: { index: number; name: string; since: string; days: number }): void =>
      log("warn", "token.old", {
        ...fields,
        detail: "Put a new token beside it in webhooks.token, change the senders, then take it away.",
      }),
    acceptResumed: (fields: { ms: number }): void => log("info", "accept.resumed", fields),
    listening: (fields: { address: string; surfaces: readonly string[]; ms?: number }): void =>
      log("info", "listening", fields),
    surfaceOff: (fields: { surface: string; reason: string }): void => log("info", "surface.off", fields),
    draining: (fields: { signal: string; running: number; queued?: number }): void => log("info", "draining", fields),
    drained: (fields: { ms: number; handedBack: number }): void => log("info", "drained", fields),
  };
}

export type Events = ReturnType<typeof createEvents>;
