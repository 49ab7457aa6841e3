import type { Surface, SystemEvent, ToolCall, Turn } from "#store/store.ts";
import { refuse } from "./limits.ts";
import type { Records, Rule, TurnRecord } from "./records.ts";
import type { ShareCounts, ShareRecord } from "./share-records.ts";

/** The bytes of a turn with its entries, of a session (counted with its first turn) and of an event, without their texts. */
export const TURN_BYTES = 1_200;
export const SESSION_BYTES = 800;
export const EVENT_BYTES = 400;

/** The callers that have a share. Heartbeats have none. */
const KINDS: Partial<Record<Surface, string>> = {
  rest: "REST key",
  rpc: "RPC token",
  hooks: "webhook source",
  schedule: "schedule",
};
const MOST_NAMES = 1_000;

/** The owners by surface and caller, because each message needs its owner several times. */
const owners = new Map<Surface, Map<string, string>>();

type Caller = Pick<Turn, "surface" | "caller">;
type ShareLimits = { share: number; storeBytes: number };

/** The key of a caller's share. */
function ownerOf({ surface, caller }: Caller): string {
  let ofSurface = owners.get(surface);
  if (ofSurface === undefined || ofSurface.size > MOST_NAMES) {
    ofSurface = new Map();
    owners.set(surface, ofSurface);
  }
  let owner = ofSurface.get(caller);
  if (owner === undefined) {
    owner = `${surface} ${caller}`;
    ofSurface.set(caller, owner);
  }
  return owner;
}

function ownerOfEvent({ caller }: Pick<SystemEvent, "caller">): string {
  return ownerOf({ surface: "hooks", caller });
}

/** The share of a caller; undefined if it holds nothing or has no share. */
export function findShare({ shares }: Records, caller: Caller): ShareCounts | undefined {
  return KINDS[caller.surface] === undefined ? undefined : shares.find(ownerOf(caller));
}

/** Refuses a turn whose caller has used up its share of the queue or of the store. */
export function checkTurnShare(records: Records, caller: Caller, limits: ShareLimits & { turns: number }): void {
  const counts = limits.share < 1 ? findShare(records, caller) : undefined;
  if (!counts) return;
  if (counts.turns >= Math.max(Math.floor(limits.share * limits.turns), 1)) {
    const waiting = `${counts.turns} turns of ${nameOf(caller)} are waiting`;
    const frees = "A new turn is accepted when one of them starts or is cancelled.";
    throw refuse("share-busy", `limits.share is reached: ${waiting}. ${frees}`);
  }
  checkShareBytes(counts, caller, limits);
}

/** Refuses more bytes for a turn whose caller has used up its share of the store. */
export function checkBytesOfShare(records: Records, caller: Caller, limits: ShareLimits): void {
  const counts = limits.share < 1 ? findShare(records, caller) : undefined;
  if (counts) checkShareBytes(counts, caller, limits);
}

/** The same as `checkTurnShare` of an event. */
export function checkEventShare(records: Records, caller: string, limits: ShareLimits & { events: number }): void {
  const sender = { surface: "hooks", caller } as const;
  const counts = limits.share < 1 ? findShare(records, sender) : undefined;
  if (!counts) return;
  if (counts.events >= Math.max(Math.floor(limits.share * limits.events), 1)) {
    const waiting = `${counts.events} events of ${nameOf(sender)} are waiting`;
    const frees = "A new event is accepted when an agent has handled one of them.";
    throw refuse("share-busy", `limits.share is reached: ${waiting}. ${frees}`);
  }
  checkShareBytes(counts, sender, limits);
}

function checkShareBytes({ bytes }: ShareCounts, caller: Caller, { share, storeBytes }: ShareLimits): void {
  if (bytes < share * storeBytes) return;
  const holds = `the turns and events of ${nameOf(caller)} hold ${bytes} bytes`;
  throw refuse("share-full", `limits.share is reached: ${holds}. Delete sessions with its turns, or raise the limit.`);
}

function nameOf({ surface, caller }: Caller): string {
  return `the ${KINDS[surface]} ${caller}`;
}

/** The bytes of a new turn; undefined if its caller has no share. */
export function bytesOfTurn(
  { surface, text, context }: { surface: Surface; text: string; context: string | undefined },
  isNewSession: boolean,
): number | undefined {
  if (KINDS[surface] === undefined) return undefined;
  return TURN_BYTES + (isNewSession ? SESSION_BYTES : 0) + textBytes(text) + textBytes(context);
}

/** The bytes of a reply and its tool calls. */
export function bytesOfReply(reply: string | undefined, toolCalls: readonly ToolCall[] | undefined): number {
  let sum = textBytes(reply);
  for (const { tool, reason, arguments: args, result } of toolCalls ?? [])
    sum += textBytes(tool) + textBytes(reason) + textBytes(args) + textBytes(result);
  return sum;
}

export function bytesOfEvent({ text, metadata }: { text: string; metadata: string | undefined }): number {
  return EVENT_BYTES + textBytes(text) + textBytes(metadata);
}

function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(text);
}

/** Counts bytes of a turn for its caller. A turn without `bytes` has no owner. */
export function countTurnBytes({ shares }: Records, { turn, bytes }: TurnRecord, by: number): void {
  if (bytes !== undefined && by !== 0) shares.count(ownerOf(turn), "bytes", by);
}

/** Counts a turn that begins to wait (1), or no longer waits (-1). */
export function countWaitingTurn({ shares }: Records, { turn, bytes }: TurnRecord, by: 1 | -1): void {
  if (bytes !== undefined) shares.count(ownerOf(turn), "turns", by);
}

/** The same of events, which wait until they have ended. */
export function countEventBytes({ shares }: Records, event: SystemEvent, by: number): void {
  if (event.bytes !== undefined) shares.count(ownerOfEvent(event), "bytes", by);
}

export function countWaitingEvent({ shares }: Records, event: SystemEvent, by: 1 | -1): void {
  if (event.bytes !== undefined) shares.count(ownerOfEvent(event), "events", by);
}

export const readShares: Rule<"readShares"> = ({ shares }) => shares.all().map(showShare);

function showShare({ owner, ...counts }: ShareRecord) {
  const space = owner.indexOf(" ");
  return { surface: owner.slice(0, space) as Surface, caller: owner.slice(space + 1), ...counts };
}
