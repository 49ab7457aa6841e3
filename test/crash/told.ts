import type { Found, FoundEntry, FoundEvent, FoundMessage, FoundSession, FoundTurn } from "./found.ts";
import type { Order } from "./orders.ts";

/** The answers of a correct gateway about three messages, one with a key, and two events. Tests change them. */
export function tellTruth() {
  const orders: Order[] = [
    orderOf(1, "rpc", "turn_1", { sessionId: "room", messageId: "msg_1" }),
    orderOf(2, "chat", "turn_2", { sessionId: "room", reply: "<t-2> two" }, "key"),
    orderOf(3, "agent", "turn_3", { sessionId: "room" }),
    orderOf(4, "wake", "evt_1"),
    orderOf(5, "wake", "evt_2"),
    { ...orderOf(6, "rpc", ""), acks: [], ackedAt: undefined, outcome: "refused" },
    { ...orderOf(7, "rpc", ""), acks: [], ackedAt: undefined, outcome: "unknown" },
  ];
  const texts = ["<t-1> one", "<t-2> two", "<t-3> three"];
  const room: FoundSession = {
    sessionId: "room",
    messageCount: 6,
    messages: texts.flatMap((text, n) => turnMessages(n, text)),
  };
  const beat = "2 system events, the oldest first\n\n1. evt_1\n<t-4> four\n\n2. evt_2\n<t-5> five";
  const main: FoundSession = { sessionId: "main", messageCount: 2, messages: turnMessages(3, beat, 1) };
  const turns = new Map(
    [...texts, beat].map((text, n) => [`turn_${n + 1}`, turnOf(`turn_${n + 1}`, n === 3 ? "main" : "room", text)]),
  );
  const events = new Map(
    ["<t-4> four", "<t-5> five"].map((text, n) => [`evt_${n + 1}`, eventOf(`evt_${n + 1}`, text)]),
  );
  const journals = [
    { sessionId: "room", from: 1, entries: [1, 2, 3].flatMap((n) => turnEntries(n, 6 * (n - 1))) },
    { sessionId: "main", from: 1, entries: turnEntries(4, 0) },
  ];
  const found = { turns, events, sessions: new Map([room, main].map((one) => [one.sessionId, one])), journals };
  return { orders, found: found satisfies Found, room, main };
}

export type Told = ReturnType<typeof tellTruth>;

const WORDS = ["", "one", "two", "three", "four", "five", "six", "seven"];

function orderOf(n: number, kind: Order["kind"], work: string, more: object = {}, key?: string): Order {
  return {
    marker: `<t-${n}>`,
    kind,
    agent: "quick",
    text: `<t-${n}> ${WORDS[n]}`,
    sessionId: kind === "wake" ? undefined : "room",
    key,
    sentAt: 10 * n,
    ackedAt: 10 * n + 5,
    acks: [{ work, ...more }],
    outcome: "acknowledged",
  };
}

/** A message and its reply, as the `n`th turn stores them in its session. */
function turnMessages(n: number, text: string, firstSeq = 6 * n + 1): FoundMessage[] {
  return [
    { messageId: `msg_${n + 1}`, role: "user", text, turnId: `turn_${n + 1}`, seq: firstSeq },
    { messageId: `msg_${n + 1}r`, role: "assistant", text, turnId: `turn_${n + 1}`, seq: firstSeq + 4 },
  ];
}

function turnOf(turnId: string, sessionId: string, reply: string): FoundTurn {
  return {
    turnId,
    sessionId,
    status: "completed",
    attempt: 1,
    reply,
    error: null,
  };
}

function eventOf(eventId: string, text: string): FoundEvent {
  return {
    eventId,
    agent: "quick",
    status: "handled",
    text,
    attempts: 0,
    turnId: "turn_4",
  };
}

function turnEntries(n: number, before: number): FoundEntry[] {
  return [
    { name: "message.created", messageId: `msg_${n}` },
    { name: "turn.queued" },
    { name: "turn.started", attempt: 1 },
    { name: "message.created", messageId: `msg_${n}r` },
    { name: "message.completed", messageId: `msg_${n}r` },
    { name: "turn.completed" },
  ].map((entry, at) => ({ ...entry, seq: before + at + 1, turnId: `turn_${n}` }));
}
