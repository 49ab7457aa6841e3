import type { Store } from "#store/store.ts";
import { setPaused } from "./agents.ts";
import { claimAnnouncements, endAnnouncement } from "./announcements.ts";
import { claimBeats, endBeat, extendBeat, planBeat, readBeat } from "./beats.ts";
import { endCompaction, queueCompaction, readSummary } from "./compactions.ts";
import { addDeliveryStep, getDelivery, listDeliveries, recordDelivery } from "./deliveries.ts";
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
import { readEntries, readMessages } from "./journal.ts";
import { createKey, listKeys, replaceKey, revokeKey, touchKey } from "./keys.ts";
import type { Rule, RuleInPieces } from "./records.ts";
import { deleteSession, getSession, listSessions } from "./sessions.ts";
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
import { countUsage, readUsage, sumUsage } from "./usage.ts";

/** The rule behind each method of the store, each one transaction. */
export const rules = {
  startTurn,
  findReplay,
  claimTurns,
  extendClaims,
  endTurn,
  releaseTurn,
  cancelTurn,
  failQueuedTurns,
  getTurn,
  getSession,
  listSessions,
  readEntries,
  queueCompaction,
  endCompaction,
  readSummary,
  deleteSession,
  countUsage,
  setPaused,
  appendGatewayEntry,
  readGatewayEntries,
  listKeys,
  createKey,
  replaceKey,
  revokeKey,
  touchKey,
  queueEvent,
  findEventReplay,
  readQueuedEvents,
  getEvent,
  requeueEvent,
  failQueuedEvents,
  planBeat,
  readBeat,
  claimBeats,
  extendBeat,
  endBeat,
  claimAnnouncements,
  endAnnouncement,
  recordDelivery,
  addDeliveryStep,
  getDelivery,
  sweep,
} satisfies { [Name in keyof Store]?: Rule<Name> };

/** The same of methods that may have to look at a great many records: an engine runs them a piece at a time. */
export const rulesInPieces = {
  listTurns,
  readMessages,
  listEvents,
  listDeliveries,
  readUsage,
  sumUsage,
} satisfies { [Name in keyof Store]?: RuleInPieces<Name> };

export type RuleName = keyof typeof rules;
export type PiecesName = keyof typeof rulesInPieces;
