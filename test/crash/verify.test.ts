import { expect, test } from "vitest";
import { type Promised, showBroken } from "./breaches.ts";
import type { FoundEntry, FoundMessage } from "./found.ts";
import { type Told, tellTruth } from "./told.ts";
import { verify } from "./verify.ts";

const LOST = "every acknowledged id exists";
const REFUSED = "a refusal stores nothing";
const ENDS = "each turn ends exactly once";
const ORDER = "order in each session";
const EVENTS = "no event is lost or handled twice";
const KEYS = "one effect per key";
const REPLY = "a reply is its message's";

function message({ room }: Told, at: number): FoundMessage {
  return room.messages[at] as FoundMessage;
}
function entry({ found }: Told, at: number): FoundEntry {
  return found.journals[0]?.entries[at] as FoundEntry;
}
function turn({ found }: Told, id: string) {
  return found.turns.get(id) as { status: string; reply: string | null };
}
function event({ found }: Told, id: string) {
  return found.events.get(id) as { status: string; turnId: string | null; text: string };
}
/** Adds a message and its reply after the others of the session. */
function addTurn(told: Told, text: string): void {
  const [user, reply] = [message(told, 4), message(told, 5)];
  told.found.turns.set("turn_9", {
    ...(told.found.turns.get("turn_3") as object),
    turnId: "turn_9",
    reply: text,
  } as never);
  told.room.messages.push(
    { ...user, messageId: "msg_9", turnId: "turn_9", text, seq: 19 },
    { ...reply, messageId: "msg_9r", turnId: "turn_9", text, seq: 23 },
  );
  told.room.messageCount += 2;
}

const LIES: [title: string, promise: Promised, lie: (told: Told) => void][] = [
  ["a missing acknowledged turn", LOST, ({ found }) => found.turns.delete("turn_1")],
  ["a missing acknowledged event", LOST, ({ found }) => found.events.delete("evt_1")],
  ["a missing acknowledged message, with its session", LOST, ({ found }) => found.sessions.delete("room")],
  ["a message under another id", LOST, (told) => (message(told, 0).messageId = "msg_other")],
  ["a message with another text", LOST, (told) => (message(told, 4).text = "<t-3> tree")],
  ["an event with another text", LOST, (told) => (event(told, "evt_1").text = "<t-4> for")],
  [
    "a message in another session",
    LOST,
    ({ orders }) => Object.assign(orders[2]?.acks[0] as object, { sessionId: "x" }),
  ],
  ["a stored refused message", REFUSED, (told) => addTurn(told, "<t-6> six")],
  [
    "a stored refused event",
    REFUSED,
    ({ orders }) => Object.assign(orders[3] as object, { acks: [], outcome: "refused" }),
  ],
  ["a turn that never ends", ENDS, (told) => (turn(told, "turn_3").status = "running")],
  ["a turn that waits for ever", ENDS, (told) => (turn(told, "turn_3").status = "queued")],
  ["a turn that no client cancelled", ENDS, (told) => (turn(told, "turn_3").status = "cancelled")],
  ["a turn with two ends", ENDS, (told) => Object.assign(entry(told, 4), { name: "turn.failed" })],
  [
    "a turn without an end in its stream",
    ENDS,
    (told) => Object.assign(entry(told, 17), { name: "message.completed" }),
  ],
  ["a turn whose end differs from its stream", ENDS, (told) => Object.assign(entry(told, 17), { name: "turn.failed" })],
  ["a turn with two replies", ENDS, (told) => Object.assign(message(told, 5), { turnId: "turn_2" })],
  ["a gap in a stream", ORDER, ({ found }) => found.journals[0]?.entries.splice(7, 1)],
  ["a repeated entry", ORDER, (told) => told.found.journals[0]?.entries.splice(7, 0, entry(told, 6))],
  [
    "two turns at a time",
    ORDER,
    (told) => Object.assign(entry(told, 4), { name: "turn.started", turnId: "turn_2", attempt: 1 }),
  ],
  ["an attempt that was left out", ORDER, (told) => (entry(told, 2).attempt = 2)],
  ["a turn that was queued twice", ORDER, (told) => Object.assign(entry(told, 6), { name: "turn.queued" })],
  ["messages out of order", ORDER, ({ room }) => void room.messages.reverse()],
  ["a message that is there twice", ORDER, (told) => (message(told, 2).messageId = "msg_1")],
  ["a message that is missing", ORDER, ({ room }) => void room.messages.splice(5, 1)],
  ["a turn without its message", ORDER, ({ room }) => void room.messages.splice(4, 1)],
  [
    "what was sent later before what was acknowledged sooner",
    ORDER,
    ({ orders }) => Object.assign(orders[0] as object, { sentAt: 90, ackedAt: 95 }),
  ],
  ["a request without a key that was accepted twice", ORDER, (told) => addTurn(told, "<t-3> three")],
  ["an unanswered request that was accepted twice", ORDER, (told) => addTurn(told, "<t-7> <t-7>")],
  ["an event that still waits", EVENTS, (told) => (event(told, "evt_1").status = "queued")],
  ["an event that died before its time", EVENTS, (told) => (event(told, "evt_1").status = "dead")],
  [
    "an event that no turn got",
    EVENTS,
    ({ main }) => void Object.assign(main.messages[0] as object, { text: "<t-5>" }),
  ],
  ["an event whose turn failed", EVENTS, (told) => (turn(told, "turn_4").status = "failed")],
  ["an event in two turns that completed", EVENTS, (told) => addTurn(told, "1 system event\n<t-4> four")],
  [
    "an event twice in one turn",
    EVENTS,
    ({ main }) => Object.assign(main.messages[0] as object, { text: "<t-4> <t-5> <t-4>" }),
  ],
  ["an event that names another turn", EVENTS, (told) => (event(told, "evt_1").turnId = "turn_1")],
  ["a key with two turns", KEYS, (told) => addTurn(told, "<t-2> two")],
  ["a key with two answers", KEYS, ({ orders }) => void orders[1]?.acks.push({ work: "turn_1" })],
  ["a key with two messages", KEYS, ({ orders }) => void orders[0]?.acks.push({ work: "turn_1", messageId: "msg_2" })],
  ["another turn's reply", REPLY, (told) => (turn(told, "turn_2").reply = "<t-1> one")],
  [
    "another reply than was answered",
    REPLY,
    ({ orders }) => Object.assign(orders[1]?.acks[0] as object, { reply: "two" }),
  ],
];

test("the truth breaks no promise", () => {
  const { orders, found } = tellTruth();
  expect(verify(orders, found)).toEqual([]);
});

test("an unacknowledged request may have been executed once", () => {
  const told = tellTruth();
  addTurn(told, "<t-7> seven");
  expect(verify(told.orders, told.found)).toEqual([]);
});

test("a stream whose beginning is no longer stored is checked against the stored part", () => {
  const told = tellTruth();
  const [journal] = told.found.journals;
  journal?.entries.splice(0, 8);
  Object.assign(journal ?? {}, { from: 9 });
  expect(verify(told.orders, told.found)).toEqual([]);
});

test("a turn that was released and started again is correct", () => {
  const told = tellTruth();
  const [journal] = told.found.journals;
  const { turnId } = entry(told, 2);
  const again = [{ name: "turn.queued" }, { name: "turn.started", attempt: 2 }].map((one) => ({
    ...one,
    seq: 0,
    turnId,
  }));
  journal?.entries.splice(4, 0, ...(again as FoundEntry[]));
  for (const [n, one] of journal?.entries.entries() ?? []) one.seq = n + 1;
  expect(verify(told.orders, told.found)).toEqual([]);
});

test.each(LIES)("reports %s", (_, promise, lie) => {
  const told = tellTruth();
  lie(told);
  const broken = verify(told.orders, told.found);
  expect(broken.map((one) => one.promise)).toContain(promise);
  expect(broken.every(({ ids }) => ids.length > 0)).toBe(true);
  expect(showBroken(broken)).toContain(`BROKEN ${promise}`);
});
