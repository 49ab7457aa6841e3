import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundMessage } from "./found.ts";
import { markersIn, type Order } from "./orders.ts";
import { verifyJournal } from "./verify-journal.ts";
import { verifySession } from "./verify-session.ts";

export type Place = FoundMessage & { sessionId: string };

/** Where in the sessions each marker is: messages that came in, not what an agent said of them. */
export type Places = ReadonlyMap<string, readonly Place[]>;

const placesOf = ({ sessions }: Found): Places => {
  const places = new Map<string, Place[]>();
  for (const { sessionId, messages } of sessions.values()) {
    for (const message of messages) {
      if (message.role !== "user") continue;
      for (const marker of markersIn(message.text)) {
        const known = places.get(marker);
        if (known) known.push({ ...message, sessionId });
        else places.set(marker, [{ ...message, sessionId }]);
      }
    }
  }
  return places;
};

/** Holds what the gateways say in the end to what they had said before; answers every promise that was broken. */
export const verify = (orders: readonly Order[], found: Found): Broken[] => {
  const places = placesOf(found);
  const ordersOf = new Map(orders.map((order) => [order.marker, order]));
  const eventsOf = new Map<string, string[]>();
  for (const { eventId, text } of found.events.values())
    for (const marker of markersIn(text)) eventsOf.set(marker, [...(eventsOf.get(marker) ?? []), eventId]);
  return [
    ...orders.flatMap((order) => verifyAcks(order)),
    ...orders.flatMap((order) =>
      order.kind === "wake" ? verifyWake(order, found, places, eventsOf) : verifyTurnOf(order, found, places),
    ),
    ...verifyTurns(found),
    ...[...found.sessions.values()].flatMap((session) => verifySession(session, found, ordersOf)),
    ...found.journals.flatMap((journal) => verifyJournal(journal, found)),
  ];
};

/** All answers to one order name the same work. */
const verifyAcks = ({ marker, acks }: Order): Broken[] => {
  const works = [...new Set(acks.map(({ work }) => work))];
  const messages = new Set(acks.flatMap(({ messageId }) => messageId ?? []));
  if (works.length <= 1 && messages.size <= 1) return [];
  return [breach("one effect per key", "one key was answered with several ids", marker, ...works, ...messages)];
};

const DEAD_AFTER = 3;

const verifyWake = (order: Order, found: Found, places: Places, eventsOf: ReadonlyMap<string, string[]>): Broken[] => {
  const { marker, outcome, acks, text } = order;
  const eventIds = eventsOf.get(marker) ?? [];
  const broken = verifyCount(order, eventIds, "event");
  const event = found.events.get(acks[0]?.work ?? eventIds[0] ?? "");
  if (!event) return broken;
  const { eventId, status, turnId } = event;
  if (event.text !== text)
    broken.push(breach("every acknowledged id exists", "another text was kept", marker, eventId));
  const reached = places.get(marker) ?? [];
  const completed = reached.filter((place) => found.turns.get(place.turnId)?.status === "completed");
  const turnIds = completed.map((place) => place.turnId);
  const lost = (words: string, ...ids: string[]) =>
    broken.push(breach("no event is lost or handled twice", words, marker, eventId, ...ids));
  if (status === "queued") lost("it still waits");
  if (status === "dead" && reached.length < DEAD_AFTER)
    lost(`it is dead, and was in ${reached.length} turns`, ...reached.map((place) => place.turnId));
  if (status === "handled" && completed.length === 0) lost("it is handled, and no turn that completed had it");
  if (completed.length > 1) lost(`${completed.length} turns that completed had it`, ...turnIds);
  if (status === "handled" && completed.length === 1 && turnId !== turnIds[0])
    lost("it names another turn", turnId ?? "none", ...turnIds);
  if (outcome === "refused" && reached.length > 0) lost("it was refused, and reached turns", ...turnIds);
  return broken;
};

/** What was acknowledged is there once, what was refused is not, and what nobody knows of at most once. */
const verifyCount = ({ marker, outcome, key, acks }: Order, ids: readonly string[], what: string): Broken[] => {
  const broken: Broken[] = [];
  const [ack] = acks;
  if (ack && !ids.includes(ack.work))
    broken.push(breach("every acknowledged id exists", `the ${what} is not there`, marker, ack.work));
  if (outcome === "refused" && ids.length > 0)
    broken.push(breach("a refusal keeps nothing", `the ${what} is there`, marker, ...ids));
  if (ids.length > 1) {
    const promise = key === undefined ? "order in each session" : "one effect per key";
    broken.push(breach(promise, `${ids.length} ${what}s came of one order`, marker, ...ids));
  }
  return broken;
};

const verifyTurnOf = (order: Order, found: Found, places: Places): Broken[] => {
  const { marker, acks, text } = order;
  const at = places.get(marker) ?? [];
  const broken = verifyCount(
    order,
    at.map(({ turnId }) => turnId),
    "turn",
  );
  const missing = (words: string, ...ids: (string | undefined)[]) =>
    broken.push(breach("every acknowledged id exists", words, marker, ...ids));
  for (const ack of acks) {
    if (!found.turns.has(ack.work)) missing("its turn cannot be read", ack.work);
    const place = at.find(({ turnId }) => turnId === ack.work);
    if (!place) continue;
    if (ack.messageId !== undefined && place.messageId !== ack.messageId)
      missing("its message has another id", ack.messageId, place.messageId);
    const sessionId = ack.sessionId ?? order.sessionId;
    if (sessionId !== undefined && place.sessionId !== sessionId)
      missing("it is in another session", sessionId, place.sessionId);
    if (place.text !== text) missing("another text was kept", place.messageId);
    if (ack.reply !== undefined && found.turns.get(ack.work)?.reply !== ack.reply)
      broken.push(breach("a reply is its message's", "another reply is kept than was answered", marker, ack.work));
  }
  return broken;
};

const verifyTurns = ({ turns, sessions }: Found): Broken[] => {
  const broken: Broken[] = [];
  for (const { turnId, status, sessionId, reply } of turns.values()) {
    const isEnded = status === "completed" || status === "failed";
    if (!isEnded) broken.push(breach("each turn ends exactly once", `it is ${status}`, turnId, sessionId));
    const messages = sessions.get(sessionId)?.messages.filter((message) => message.turnId === turnId) ?? [];
    const [asked, ...more] = messages.filter(({ role }) => role === "user");
    if (!asked || more.length > 0)
      broken.push(breach("order in each session", `it has ${asked ? more.length + 1 : 0} messages`, turnId, sessionId));
    // The echo agent says what it was told.
    if (status === "completed" && asked && reply !== asked.text)
      broken.push(breach("a reply is its message's", "it has another", turnId, sessionId));
  }
  return broken;
};
