import type { Store } from "#store/store.ts";
import { setPaused } from "./agents.ts";
import { announceAgain } from "./announcements.ts";
import { startBeat } from "./beat-turns.ts";
import { dueBeats, planBeat, readBeat, removeBeat } from "./beats.ts";
import { extendBudget } from "./budget-turns.ts";
import { grantBudget, listBudgets } from "./budgets.ts";
import { startCompaction } from "./compaction-turns.ts";
import { readSummary } from "./compactions.ts";
import { addDeliveryStep, getDelivery, listDeliveries, readDeliveries, recordDelivery } from "./deliveries.ts";
import {
  failQueuedEvents,
  findEventReplay,
  getEvent,
  listEvents,
  queueEvent,
  readQueuedEvents,
  requeueEvent,
} from "./events.ts";
import { appendGatewayEntry, readGatewayEntries } from "./gateway.ts";
import { findGroup } from "./groups.ts";
import { readEntries, readMessages } from "./journal.ts";
import { createKey, listKeys, replaceKey, revokeKey, touchKey } from "./keys.ts";
import { getNotification, listNotifications, notifyEvent, replayNotification } from "./notifications.ts";
import { claimOutgoing, endOutgoing, releaseOutgoing } from "./outbox.ts";
import type { Rule, RuleInPieces } from "./records.ts";
import {
  planSchedule,
  readSchedules,
  requestRun,
  runSchedule,
  setSchedulePaused,
  unplanSchedule,
} from "./schedules.ts";
import { deleteSession, getSession, listSessions } from "./sessions.ts";
import { readShares } from "./shares.ts";
import { sweep } from "./sweep.ts";
import { getTurn, listTurns } from "./turn-lookup.ts";
import {
  cancelTurn,
  claimTurns,
  endTurn,
  extendClaims,
  failQueuedTurns,
  findReplay,
  releaseTurn,
  startTurn,
} from "./turns.ts";
import { readUsage, sumUsage } from "./usage.ts";

type Rules = { [Name in keyof Store]?: Rule<Name> | RuleInPieces<Name> };

/** The rules that change nothing. */
const reading = {
  findReplay,
  findGroup,
  findEventReplay,
  getTurn,
  listTurns,
  getSession,
  listSessions,
  readEntries,
  readMessages,
  readSummary,
  readUsage,
  sumUsage,
  readShares,
  readGatewayEntries,
  listKeys,
  readQueuedEvents,
  getEvent,
  listEvents,
  readBeat,
  dueBeats,
  getDelivery,
  readDeliveries,
  listDeliveries,
  listBudgets,
  readSchedules,
  listNotifications,
  getNotification,
} satisfies Rules;

const writing = {
  startTurn,
  claimTurns,
  extendClaims,
  endTurn,
  releaseTurn,
  cancelTurn,
  failQueuedTurns,
  startCompaction,
  deleteSession,
  setPaused,
  grantBudget,
  extendBudget,
  appendGatewayEntry,
  createKey,
  replaceKey,
  revokeKey,
  touchKey,
  queueEvent,
  requeueEvent,
  failQueuedEvents,
  planBeat,
  startBeat,
  removeBeat,
  planSchedule,
  unplanSchedule,
  runSchedule,
  requestRun,
  setSchedulePaused,
  claimOutgoing,
  endOutgoing,
  releaseOutgoing,
  announceAgain,
  replayNotification,
  notifyEvent,
  recordDelivery,
  addDeliveryStep,
  sweep,
} satisfies Rules;

/** The rule behind each method of the store, each one transaction. */
export const rules = { ...reading, ...writing };

export type RuleName = keyof typeof rules;

export function isReading(name: string): boolean {
  return name in reading;
}
