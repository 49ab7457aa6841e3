import { setTimeout as pause } from "node:timers/promises";
import type { Random } from "#test/harness/random.ts";
import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundEvent, FoundTurn } from "./found.ts";
import type { Order } from "./orders.ts";
import { eventOf, type Json, turnOf } from "./read.ts";
import { bearer, type Caller, SECRETS } from "./requests.ts";

type WatchOptions = {
  caller: Caller;
  random: Random;
  urls: readonly string[];
  orders: readonly Order[];
};

const LANES = 2;
const REST_MS = 25;
/** The number of records that are read in turn; a new one replaces one that was read often enough. */
const WATCHED = 40;
const LOOKS = 12;

type Watched = { kind: Seen["kind"]; id: string; seen: Seen | undefined; looks: number };

/**
 * Reads acknowledged records again and again, on any gateway, while gateways are killed, suspended and disconnected: a reported state is never
 * undone, and an acknowledged record is never missing.
 */
export function startWatching({ caller, random, urls, orders }: WatchOptions) {
  const broken: Broken[] = [];
  const known = new Map<string, Watched>();
  let looks = 0;
  let isStopped = false;

  const note = (of: Watched, later: Seen | undefined): void => {
    const { id, seen } = of;
    const words = later === undefined ? "it was acknowledged, and could not be found" : seen && backwards(seen, later);
    if (words !== undefined) broken.push(breach("no state moves backwards", words, of.kind, id));
    of.seen = later ?? seen;
  };

  /** Undefined if it does not exist; null if the result is unknown. */
  const ask = async (kind: Seen["kind"], id: string): Promise<Seen | undefined | null> => {
    const url = random.pick(urls);
    if (kind === "session") {
      const body = { jsonrpc: "2.0", id: 1, method: "session.get", params: { sessionId: id, limit: 1 } };
      const { text } = await caller.ask(`${url}/rpc`, "POST", bearer(SECRETS.rpcToken), JSON.stringify(body));
      const { result, error } = JSON.parse(text) as { result?: Json; error?: { data?: { name?: string } } };
      if (!result) return error?.data?.name === "session-not-found" ? undefined : null;
      const [last] = result.messages as { seq: number }[];
      return {
        kind,
        messageCount: (result.session as { messageCount: number }).messageCount,
        lastSeq: last?.seq ?? 0,
      };
    }
    const { status, text } = await caller.ask(`${url}/api/v1/${kind}s/${id}`, "GET", bearer(SECRETS.key));
    if (status === 404) return undefined;
    if (status !== 200) return null;
    const json = JSON.parse(text) as Json;
    return kind === "event" ? { kind, event: eventSeen(eventOf(json)) } : { kind, turn: turnSeen(turnOf(json)) };
  };

  const look = async (of: Watched): Promise<void> => {
    of.looks++;
    const later = await ask(of.kind, of.id).catch(() => null);
    if (later === null) return;
    looks++;
    note(of, later);
  };

  /** A recently acknowledged record, or its session. */
  const choose = (): Watched | undefined => {
    const order = orders.at(-1 - random.below(Math.min(orders.length, 50)));
    const ack = order?.acks[0];
    if (!order || !ack) return undefined;
    const isSession = ack.sessionId !== undefined && random.chance(0.3);
    const kind = isSession ? "session" : order.kind === "wake" ? "event" : "turn";
    // A webhook's session has the name that its sender gave it.
    const id = isSession ? (ack.sessionId as string) : ack.work;
    return known.get(id) ?? { kind, id, seen: undefined, looks: 0 };
  };

  const lane = async (n: number): Promise<void> => {
    // Each has a separate reader, so that two answers about one record never overlap.
    const mine: Watched[] = [];
    while (!isStopped) {
      const chosen = mine.length < WATCHED / LANES ? choose() : undefined;
      if (chosen && !known.has(chosen.id)) {
        known.set(chosen.id, chosen);
        mine.push(chosen);
      }
      const next = mine.length > 0 ? random.pick(mine) : undefined;
      if (next) await look(next);
      if (next && next.looks >= LOOKS && next.kind !== "session") mine.splice(mine.indexOf(next), 1);
      await pause(REST_MS + n);
    }
  };
  const running = Promise.all(Array.from({ length: LANES }, (_, n) => lane(n)));

  return {
    looks: () => looks,
    async stop(): Promise<void> {
      isStopped = true;
      await running;
    },
    /** Compares the end with the earlier answers. */
    verify(found: Found): Broken[] {
      for (const of of known.values()) {
        const later = lastOf(of, found);
        // The verifier reports anything that is missing at the end.
        if (later) note(of, later);
      }
      return broken;
    },
  };
}

function lastOf({ kind, id }: Watched, { turns, events, sessions }: Found): Seen | undefined {
  const [turn, event, session] = [turns.get(id), events.get(id), sessions.get(id)];
  if (kind === "turn") return turn && { kind, turn: turnSeen(turn) };
  if (kind === "event") return event && { kind, event: eventSeen(event) };
  return session && { kind, messageCount: session.messageCount, lastSeq: session.messages.at(-1)?.seq ?? 0 };
}

function turnSeen({ status, attempt, reply, error }: FoundTurn) {
  return { status, attempt, reply, error };
}
function eventSeen({ status, attempts, turnId }: FoundEvent) {
  return { status, attempts, turnId };
}

type Seen =
  | { kind: "turn"; turn: Pick<FoundTurn, "status" | "attempt" | "reply" | "error"> }
  | { kind: "event"; event: Pick<FoundEvent, "status" | "attempts" | "turnId"> }
  | { kind: "session"; messageCount: number; lastSeq: number };

const ENDED = ["completed", "failed", "cancelled"];

/** The order of a turn's states: it waits, runs, is released and runs again, and ends. */
function stepOf({ status, attempt }: Pick<FoundTurn, "status" | "attempt">): number {
  return ENDED.includes(status) ? Number.POSITIVE_INFINITY : status === "running" ? 2 * attempt : 2 * attempt + 1;
}

/** The reason why a later answer is behind an earlier one; undefined if it is not. */
function backwards(before: Seen, later: Seen): string | undefined {
  if (before.kind === "turn" && later.kind === "turn") {
    const [from, to] = [before.turn, later.turn];
    if (stepOf(to) < stepOf(from)) return `${from.status} (attempt ${from.attempt}), then ${to.status} (${to.attempt})`;
    if (!ENDED.includes(from.status)) return undefined;
    return JSON.stringify(from) === JSON.stringify(to)
      ? undefined
      : `it had ended, and changed: ${JSON.stringify(from)}, then ${JSON.stringify(to)}`;
  }
  if (before.kind === "event" && later.kind === "event") {
    const [from, to] = [before.event, later.event];
    if (to.attempts < from.attempts) return `${from.attempts} attempts, then ${to.attempts}`;
    const isEnded = from.status !== "queued";
    return isEnded && (to.status !== from.status || to.turnId !== from.turnId)
      ? `${from.status} by ${from.turnId}, then ${to.status} by ${to.turnId}`
      : undefined;
  }
  if (before.kind === "session" && later.kind === "session")
    return later.messageCount < before.messageCount || later.lastSeq < before.lastSeq
      ? `${before.messageCount} messages up to ${before.lastSeq}, then ${later.messageCount} up to ${later.lastSeq}`
      : undefined;
  return "it became something else";
}
