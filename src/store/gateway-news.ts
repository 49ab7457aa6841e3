import type { BudgetNews } from "./budgets.ts";

/** An entry of the gateway's own stream: `seq` begins at 1 and grows by one. */
export type GatewayEntry = { seq: number; at: number } & GatewayNews;
export type GatewayNews =
  | { name: "event.queued"; eventId: string; agentName: string }
  | { name: "event.handled"; eventId: string; agentName: string; turnId: string }
  | { name: "event.dead"; eventId: string; agentName: string; attempts: number; reason: string }
  | { name: "heartbeat.ran"; agentName: string; events: number; turnIds: readonly string[]; nextAt: number | null }
  | { name: "agent.paused" | "agent.resumed"; agentName: string }
  | { name: "agent.reloaded"; agentName: string; changed: readonly string[] }
  | { name: "system.reloaded"; changed: readonly string[]; needsRestart: readonly string[] }
  | { name: "health.changed"; nodeId: string; status: "ok" | "degraded"; parts: readonly HealthPart[] }
  | BudgetNews
  | ScheduleNews;
export type HealthPart = { name: string; status: "ok" | "degraded"; detail: string | null };

/** A planned time of a schedule starts a turn, or none. */
export type ScheduleOutcome = "started" | "skipped" | "missed";
type ScheduleNews =
  | {
      name: "schedule.ran";
      scheduleName: string;
      outcome: ScheduleOutcome;
      plannedAt: number;
      turnId: string | null;
      reason: string | null;
    }
  | { name: "schedule.paused" | "schedule.resumed"; scheduleName: string };
