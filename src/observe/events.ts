import type { Logger } from "#observe/logger.ts";
import type { Registry } from "#observe/metrics.ts";
import { createRepeats } from "#observe/repeats.ts";
import { EVENTS, type EventFields, type EventRow, type Surface, type TurnRun } from "./event-table.ts";

/** One access line: every request that was answered, whatever the answer. */
interface RequestHandled {
  surface: Surface;
  /** The operation or method; `unknown` if there is none, never the caller's text. */
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

/** An attempt to announce a reply. */
interface Announced {
  channel: string;
  turnId: string;
  outcome: "delivered" | "retried" | "failed" | "returned";
  attempt: number;
  reason: string | undefined;
}

/** An attempt to send a notification. */
interface Notified {
  endpoint: string;
  notificationId: string;
  outcome: "delivered" | "retried" | "failed" | "returned" | "stopped";
  attempt: number;
  reason: string | undefined;
}

interface AuthFailed {
  surface: Surface;
  address?: string;
  /** The path as in the contract, if an unauthenticated caller may have sent any text. */
  path?: string | undefined;
  mapping?: string | undefined;
  requestId?: string;
  logged: boolean;
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

/** Learns of turns that ended here, and of attempts to announce a reply, after they are stored. */
export type TurnFollower = { turnEnded(turnId: string): void; announced(turnId: string): void };

type EventsParts = { logger: Logger; registry: Registry; followers?: ReadonlySet<TurnFollower> };
type Outlets = Required<EventsParts> & {
  /** A counter `gateway_<name>_total`. */
  count(name: string, help: string, ...labels: string[]): ReturnType<Registry["counter"]>;
  /** A histogram `gateway_<name>_seconds`. */
  time(name: string, help: string, ...labels: string[]): ReturnType<Registry["histogram"]>;
};

/**
 * The business events: each is one log line and one count, in one call. Labels have few values; ids go to the line only.
 * No event throws or waits.
 */
export function createEvents({ logger, registry, followers = new Set() }: EventsParts) {
  const outlets: Outlets = {
    logger,
    registry,
    followers,
    count: (name, help, ...labels) => registry.counter(`gateway_${name}_total`, help, labels),
    time: (name, help, ...labels) => registry.histogram(`gateway_${name}_seconds`, help, labels),
  };
  registry.read(
    "counter",
    "gateway_log_lines_dropped_total",
    "Log lines dropped as their reader was too slow.",
    logger.dropped,
  );
  return {
    ...tableEvents(outlets),
    ...requestEvents(outlets),
    ...turnEvents(outlets),
    ...attemptUsage(outlets),
    ...storeEvents(outlets),
  };
}

export type Events = ReturnType<typeof createEvents>;

function tableEvents({ count, logger: { log } }: Outlets) {
  const counters = new Map<string, ReturnType<typeof count>>();
  const events = Object.entries(EVENTS as unknown as Record<string, EventRow<Record<string, unknown>>>).map(
    ([name, [level, line, metric, help = "", ...labels]]) => {
      const counter = metric === undefined ? undefined : (counters.get(metric) ?? count(metric, help, ...labels));
      if (metric !== undefined && counter) counters.set(metric, counter);
      const report = (fields: Record<string, unknown>): void => {
        counter?.at(...labels.map((label) => String(fields[label]))).inc(Number(fields.count ?? 1));
        log(typeof level === "string" ? level : level(fields), line, fields);
      };
      return [name, report];
    },
  );
  return Object.fromEntries(events) as { [Name in keyof EventFields]: (fields: EventFields[Name]) => void };
}

/** The errors of work that was not stored because of a limit or a shutdown. */
const REFUSALS: ReadonlySet<string> = new Set([
  "session-busy",
  "session-full",
  "share-busy",
  "share-full",
  "gateway-busy",
  "store-full",
  "shutting-down",
]);

function requestEvents({ count, time, logger }: Outlets) {
  const requests = count("requests", "Answered requests.", "surface", "operation", "status");
  const requestSeconds = time(
    "request_duration",
    "Time from the head of a request to the end of its answer.",
    "surface",
    "operation",
  );
  const errors = count("errors", "Requests answered with an error, by error name.", "surface", "error");
  const connectionsRefused = count(
    "connections_refused",
    "Connections closed immediately because their address had too many.",
  );
  const workRefused = count("work_refused", "Work refused because of a limit or a shutdown, by error name.", "reason");
  const authFailures = count("auth_failures", "Requests with a missing or invalid token.", "surface");

  const countRequest = (surface: Surface, operation: string, status: number, ms: number, error?: string): void => {
    requests.at(surface, operation, `${Math.trunc(status / 100)}xx`).inc();
    requestSeconds.at(surface, operation).observe(ms / 1000);
    if (error === undefined) return;
    errors.at(surface, error).inc();
    if (REFUSALS.has(error)) workRefused.at(error).inc();
  };

  return {
    requestHandled(request: RequestHandled): void {
      const { surface, operation, status, ms, error } = request;
      countRequest(surface, operation, status, ms, error);
      request.ms = rounded(ms);
      logger.log("info", "request", request);
    },
    /** A call over a WebSocket. All are counted; one that changed something or failed has a line, the others only at `debug`. */
    socketCallHandled(call: SocketCall, ms: number): void {
      const { operation, error, turnId, changes } = call.outcome;
      countRequest("rpc", operation, 200, ms, error);
      const level = changes || error !== undefined ? "info" : "debug";
      if (!logger.writes(level)) return;
      const { requestId, callerName: caller } = call;
      const facts = { surface: "rpc", transport: "websocket", operation, status: 200, ms: rounded(ms) };
      logger.log(level, "request", { ...facts, requestId, caller, error, turnId });
    },
    /** Always counted. A line is written only if `logged` is true, so that guesses do not fill the log. */
    authFailed({ logged, ...attempt }: AuthFailed): void {
      authFailures.at(attempt.surface).inc();
      if (logged) logger.log("warn", "auth.failed", attempt);
    },
    /** Each refused connection is counted. There may be many, so only some write a line. */
    connectionRefused({ address, logged }: { address: string; logged: boolean }): void {
      connectionsRefused.at().inc();
      if (logged) logger.log("warn", "connection.refused", { address });
    },
  };
}

function turnEvents({ count, time, logger, followers }: Outlets) {
  const started = count("turns_started", "Started attempts of turns.", "agent");
  const ended = count("turns", "Ended turns, by agent and status.", "agent", "status");
  const seconds = time("turn_duration", "Duration of the last attempt of a turn.", "agent");
  const waitSeconds = time("turn_wait", "Time that a turn waited in the queue before an attempt.", "agent");
  const announcements = count(
    "announcements",
    "Attempts to deliver a reply to a channel, by outcome.",
    "channel",
    "outcome",
  );
  const notifications = count("notifications", "Attempts to send a notification, by outcome.", "endpoint", "outcome");
  return {
    turnStarted(turn: TurnRun & { queuedMs: number }): void {
      started.at(turn.agent).inc();
      waitSeconds.at(turn.agent).observe(turn.queuedMs / 1000);
      logger.log("debug", "turn.started", turn);
    },
    turnEnded(turn: TurnRun & { outcome: "completed" | "failed" | "cancelled"; ms: number }): void {
      ended.at(turn.agent, turn.outcome).inc();
      seconds.at(turn.agent).observe(turn.ms / 1000);
      // A completed turn is in its request's line, the journal and the counters.
      const level = turn.outcome === "failed" ? "warn" : turn.outcome === "cancelled" ? "info" : "debug";
      if (logger.writes(level)) logger.log(level, "turn.ended", { ...turn, ms: rounded(turn.ms) });
      for (const follower of followers) follower.turnEnded(turn.turnId);
    },
    /** `retried` is tried again, `failed` is not, `returned` continues on the next gateway. */
    announced(attempt: Announced): void {
      const { channel, outcome } = attempt;
      announcements.at(channel, outcome).inc();
      const level = outcome === "delivered" ? "debug" : outcome === "returned" ? "info" : "warn";
      logger.log(level, `announcement.${outcome}`, attempt);
      if (outcome !== "returned") for (const follower of followers) follower.announced(attempt.turnId);
    },
    /** As `announced`; `stopped` waits until its endpoint starts again. An endpoint that fails has its own line. */
    notified(attempt: Notified): void {
      const { endpoint, outcome } = attempt;
      notifications.at(endpoint, outcome).inc();
      const level = outcome === "failed" ? "warn" : outcome === "returned" ? "info" : "debug";
      logger.log(level, `notification.${outcome}`, attempt);
    },
  };
}

const BILLION = 1_000_000_000;

function attemptUsage({ count, registry, logger: { log } }: Outlets) {
  const byModel = ["agent", "model"] as const;
  const inputs = count("input_tokens", "Input tokens of models.", ...byModel);
  const outputs = count("output_tokens", "Output tokens of models.", ...byModel);
  const cached = count("cached_tokens", "Input tokens from the providers' caches.", ...byModel);
  const reasoning = count("reasoning_tokens", "Output tokens for reasoning.", ...byModel);
  /** The costs in whole billionths, because sums of fractions would drift. Only models with a price have an entry. */
  const costs = new Map<string, { labels: { agent: string; model: string }; cost: number }>();
  registry.read("counter", "gateway_cost_total", "Cost of attempts, by the configured prices of their models.", () =>
    [...costs.values()].map(({ labels, cost }) => ({ labels, value: cost / BILLION })),
  );
  return {
    /** An attempt that reached a backend, whatever its result. Includes attempts that wrote a summary. */
    attemptUsed(attempt: AttemptUsed): void {
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
  };
}

function storeEvents({ count, logger: { log } }: Outlets) {
  const failures = count("store_failures", "Failed calls to the store.", "operation");
  const repeats = createRepeats(({ names, ...ended }) => log("info", "store.settled", { operations: names, ...ended }));
  return {
    /** Counted always. A lasting failure has a line now and then, with the count of the unlogged ones, and a line at its end. */
    storeFailed({ operation, error }: { operation: string; error: unknown }): void {
      failures.at(operation).inc();
      const suppressed = repeats(operation, error instanceof Error ? `${error.name}: ${error.message}` : "");
      if (suppressed === undefined) return;
      log("error", "store.failed", { operation, error, ...(suppressed > 0 && { suppressed }) });
    },
    /** An event of the store's engine: its database was lost or found again, or data was migrated, repaired or taken over. */
    storeNoticed({ name, detail }: { name: string; detail: string }): void {
      log(["unavailable", "repaired", "exposed"].includes(name) ? "warn" : "info", `store.${name}`, { detail });
    },
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
