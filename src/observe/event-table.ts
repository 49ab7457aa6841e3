import type { Level } from "#observe/logger.ts";

export type Surface = "rest" | "rpc" | "hooks" | "public";

export interface TurnRun {
  agent: string;
  turnId: string;
  attempt: number;
  sessionId?: string | undefined;
}

/** The fields of events that write a log line and, if they have a metric, increment it with its labels. */
export interface EventFields {
  socketOpened: { requestId: string; caller: string; address: string };
  /** The client left too much data unread for too long. */
  socketCut: { requestId: string; caller: string };
  /** `by` is the gateway's close code, or `peer` if the client closed the connection. */
  socketClosed: { requestId: string; caller: string; by: string; ms: number };
  turnRetried: TurnRun & { delayMs: number; reason?: string };
  /** The lease of the turn ended while it ran here, because the process or the store was blocked. Its end is discarded, and it runs again. */
  turnLost: TurnRun;
  backendFailed: { agent: string; turnId: string; error: unknown };
  /** A line that the program of an agent or a tool server wrote to standard error. */
  programSaid: { program: string; line: string; turnId?: string | undefined; unheard?: number | undefined };
  /** A tool server could not be started or reached. Turns continue without its tools. */
  toolsUnavailable: { server: string; reason: string };
  sessionCompacted: {
    sessionId: string;
    agent: string;
    cause: "asked" | "size";
    before: Size;
    after: Size;
    ms: number;
  };
  /** An automatic compaction failed. The session continues without it. */
  compactionFailed: { sessionId: string; agent: string; error: unknown };
  /** A webhook joined the open turn of an earlier one. */
  webhookCoalesced: { mapping: string; turnId: string };
  /** The event was not stored, for lack of room. The caller received an error. */
  eventRefused: { reason: string };
  /** The next turn of a beat could not be started. The start is retried. */
  beatDelayed: { agent: string; reason: string; delayMs: number };
  usageUnknown: { agent: string };
  /** The wall clock jumped, so for a while no record is deleted by age. */
  retentionPaused: { byMs: number };
  /** A budget refused a turn, or ended it. The caller received an error. */
  budgetRefused: { budget: string };
  /** The whole error, with its stack, is written only to the log. */
  unexpectedError: { error: unknown; requestId?: string; where?: string };
  configReloaded: { cause: string; changed: readonly string[]; needRestart?: readonly string[] };
  /** The last valid configuration stays in force. */
  configRefused: { cause: string; problems: unknown };
  /** A setting that works but should be changed, such as a short secret or a store in memory. */
  configWarned: { about: string; detail: string };
  skillRefused: { skill: string; reason: string };
  keyCreated: { keyId: string; name: string; caller: string; replaces?: string };
  keyRevoked: { keyId: string; name?: string; caller: string };
  acceptPaused: { reason: string };
  acceptResumed: { ms: number };
  beatRan: { agent: string; events: number; turns: number; returned: number; ms: number };
  eventDead: { eventId: string; agent: string; attempts: number; turnId: string; reason: string };
  /** The agent of the events was removed from the configuration, or the gateway stops with a store in memory. */
  eventsGivenUp: { agent: string; count: number; reason: string };
  spansDropped: { reason: "queue" | "collector"; count: number; detail: string };
  /** The waiting turns of an agent that was removed from the configuration have failed. */
  turnsGivenUp: { agent: string; count: number };
  /** `caller` requested the run. A planned run has none. */
  scheduleRan: {
    schedule: string;
    outcome: "started" | "skipped" | "missed";
    plannedAt: string;
    reason?: string | undefined;
    turnId?: string | undefined;
    caller?: string | undefined;
  };
  /** A gateway with another configuration planned the schedule: it does not run here. */
  scheduleReplaced: { schedule: string; plan: string };
  schedulePaused: { schedule: string; caller: string };
  scheduleResumed: { schedule: string; caller: string };
  agentPaused: { agent: string; caller: string };
  agentResumed: { agent: string; caller: string };
  budgetGranted: { budget: string; tokens: number | undefined; cost: number | undefined; caller: string };
  /** Announcements that were not delivered when the gateway stopped. If they are `stored`, the next start delivers them. */
  announcementsLeft: { left: number; stored: boolean };
  notificationsLeft: { left: number; stored: boolean };
  /** An endpoint of notifications begins to fail. Further failures are only in the debug log. */
  notifyFailing: { endpoint: string; reason: string };
  /** An endpoint of notifications answered 410 Gone. It receives nothing until the configuration changes. */
  notifyStopped: { endpoint: string; reason: string };
  retentionResumed: { byMs: number };
  /** A REST key that expires soon, or has just expired; reported once a day. */
  keyExpiring: { name: string; expiresAt: string; detail: string };
  /** A webhook token that should be replaced; reported once a day. */
  webhookTokenOld: { index: number; name: string; since: string; days: number; detail: string };
  listening: { address: string; surfaces: readonly string[]; ms?: number };
  surfaceOff: { surface: string; reason: string };
  draining: { signal: string; running: number; queued?: number };
  drained: { ms: number; handedBack: number };
}
type Size = { messages: number; tokens: number };

export type EventRow<Fields> = readonly [
  level: Level | ((fields: Fields) => Level),
  line: string,
  ...counted: readonly [metric?: string, help?: string, ...labels: (keyof Fields)[]],
];

/** The lines and metrics (`gateway_<metric>_total`) of the events. An event with a `count` adds that number. */
export const EVENTS: { [Name in keyof EventFields]: EventRow<EventFields[Name]> } = {
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
  webhookCoalesced: [
    "debug",
    "webhook.coalesced",
    "webhooks_coalesced",
    "Webhooks that joined the open turn of an earlier one.",
    "mapping",
  ],
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
  budgetRefused: ["debug", "budget.refused", "budget_refused", "Turns that a budget refused or ended.", "budget"],
  unexpectedError: ["error", "unexpected.error", "unexpected_errors", "Unexpected errors."],
  configReloaded: ["info", "config.reloaded", "config_reloads", "Configurations applied."],
  configRefused: ["error", "config.refused", "config_refusals", "Configurations refused."],
  configWarned: ["warn", "config.warned", "config_warnings", "Warnings about the configuration."],
  skillRefused: ["warn", "skill.refused", "skills_refused", "Skill folders that were refused."],
  keyCreated: ["info", "key.created", "keys_created", "REST keys created."],
  keyRevoked: ["info", "key.revoked", "keys_revoked", "REST keys revoked."],
  acceptPaused: ["error", "accept.paused", "accept_pauses", "Pauses in accepting new connections.", "reason"],
  beatRan: [
    ({ events }) => (events > 0 ? "info" : "debug"),
    "beat.ran",
    "beats",
    "Heartbeats, including those without events.",
    "agent",
  ],
  acceptResumed: ["info", "accept.resumed"],
  eventDead: ["warn", "event.dead", "events_died", "System events that became dead.", "agent"],
  eventsGivenUp: ["warn", "events.given-up", "events_died", "System events that became dead.", "agent"],
  // A full queue is logged only at `debug`, because it would write a line for each turn.
  spansDropped: [
    ({ reason }) => (reason === "queue" ? "debug" : "warn"),
    "spans.dropped",
    "spans_dropped",
    "Spans that were not exported to the collector.",
    "reason",
  ],
  turnsGivenUp: ["warn", "turns.given-up"],
  scheduleRan: [
    ({ outcome }) => (outcome === "started" ? "info" : "warn"),
    "schedule.ran",
    "schedule_runs",
    "Runs of schedules, by outcome: started, skipped or missed.",
    "schedule",
    "outcome",
  ],
  scheduleReplaced: ["warn", "schedule.replaced"],
  schedulePaused: ["info", "schedule.paused"],
  scheduleResumed: ["info", "schedule.resumed"],
  agentPaused: ["info", "agent.paused"],
  agentResumed: ["info", "agent.resumed"],
  budgetGranted: ["info", "budget.granted"],
  announcementsLeft: [({ stored }) => (stored ? "info" : "warn"), "announcements.left"],
  notificationsLeft: [({ stored }) => (stored ? "info" : "warn"), "notifications.left"],
  notifyFailing: ["warn", "notify.failing"],
  notifyStopped: ["warn", "notify.stopped", "notify_stops", "Stops of endpoints of notifications.", "endpoint"],
  retentionResumed: ["info", "retention.resumed"],
  keyExpiring: ["warn", "key.expiring"],
  webhookTokenOld: ["warn", "token.old"],
  listening: ["info", "listening"],
  surfaceOff: ["info", "surface.off"],
  draining: ["info", "draining"],
  drained: ["info", "drained"],
};
