import type { Pieces } from "#store/rules/records.ts";
import { rules, rulesInPieces } from "#store/rules/rules.ts";
import type { SqliteRecords } from "./records.ts";

type Method = { run: (records: SqliteRecords, ...args: unknown[]) => unknown; writes: boolean };

/** Methods that need no room on the disk: all that read, and the one that extends leases, which are in memory. */
const NEED_NO_DISK: ReadonlySet<string> = new Set([
  ...["findReplay", "getTurn", "getSession", "listSessions", "readEntries", "readSummary"],
  ...["readGatewayEntries", "listKeys", "findEventReplay", "readQueuedEvents", "getEvent", "readBeat", "getDelivery"],
  ...["extendClaims", ...Object.keys(rulesInPieces)],
]);

type Claiming = { free: number; freeOf: ReadonlyMap<string, number>; messageIds: string[] };

/** A function does not reach this thread: in its place come the answers that it would give. */
const claimTurns: Method["run"] = (records, request) => {
  const { freeOf, messageIds, ...others } = request as Parameters<typeof rules.claimTurns>[1] & Claiming;
  const newMessageId = () => messageIds.shift() as string;
  const free = Math.min(others.free, messageIds.length);
  return rules.claimTurns(records, { ...others, free, freeOf: (agent) => freeOf.get(agent) ?? 0, newMessageId });
};

const claimAnnouncements: Method["run"] = (records, request) => {
  const { freeOf, ...others } = request as Parameters<typeof rules.claimAnnouncements>[1] & Pick<Claiming, "freeOf">;
  return rules.claimAnnouncements(records, { ...others, freeOf: (channel) => freeOf.get(channel) ?? 0 });
};

const all: Record<string, unknown> = {
  ...rules,
  ...rulesInPieces,
  claimTurns,
  claimAnnouncements,
};

/** The methods of the store as the worker runs them, and the other calls of the main side. */
export const methods: Readonly<Record<string, Method>> = {
  ...Object.fromEntries(
    Object.entries(all).map(([name, run]) => [name, { run: run as Method["run"], writes: !NEED_NO_DISK.has(name) }]),
  ),
  ping: { run: () => undefined, writes: false },
  channels: { run: (records) => records.channels(), writes: false },
};

/** A call that is worked off in pieces: others run in between. It only reads. */
export const isPieces = (value: unknown): value is Pieces<unknown> =>
  typeof value === "object" && value !== null && Symbol.iterator in value && "next" in value;
