import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundJournal, FoundMessage, FoundSession } from "./found.ts";
import { markersIn, type Order } from "./orders.ts";

type Place = FoundMessage & { sessionId: string };

/** The positions of each marker in the sessions: in messages from callers, not in replies of an agent. */
type Places = ReadonlyMap<string, readonly Place[]>;

function placesOf({ sessions }: Found): Places {
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
}

/** Compares the final state with the earlier answers of the gateways. Returns every broken promise. */
export function verify(orders: readonly Order[], found: Found): Broken[] {
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
}

/** All answers to one order name the same work. */
function verifyAcks({ marker, acks }: Order): Broken[] {
  const works = [...new Set(acks.map(({ work }) => work))];
  const messages = new Set(acks.flatMap(({ messageId }) => messageId ?? []));
  if (works.length <= 1 && messages.size <= 1) return [];
  return [breach("one effect per key", "one key was answered with several ids", marker, ...works, ...messages)];
}

const DEAD_AFTER = 3;

function verifyWake(order: Order, found: Found, places: Places, eventsOf: ReadonlyMap<string, string[]>): Broken[] {
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
}

/** Acknowledged work is there once, refused work is not, and work of unknown outcome at most once. */
function verifyCount({ marker, outcome, key, acks }: Order, ids: readonly string[], what: string): Broken[] {
  const broken: Broken[] = [];
  const [ack] = acks;
  if (ack && !ids.includes(ack.work))
    broken.push(breach("every acknowledged id exists", `the ${what} is not there`, marker, ack.work));
  if (outcome === "refused" && ids.length > 0)
    broken.push(breach("a refusal stores nothing", `the ${what} is there`, marker, ...ids));
  if (ids.length > 1) {
    const promise = key === undefined ? "order in each session" : "one effect per key";
    broken.push(breach(promise, `${ids.length} ${what}s came of one order`, marker, ...ids));
  }
  return broken;
}

function verifyTurnOf(order: Order, found: Found, places: Places): Broken[] {
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
    // A turn of a burst has the texts of all its requests.
    const texts = order.kind === "burst" ? place.text.split("\n\n") : [place.text];
    if (!texts.includes(text)) missing("another text was kept", place.messageId);
    if (ack.reply !== undefined && found.turns.get(ack.work)?.reply !== ack.reply)
      broken.push(breach("a reply is its message's", "another reply is kept than was answered", marker, ack.work));
  }
  return broken;
}

function verifyTurns({ turns, sessions }: Found): Broken[] {
  const broken: Broken[] = [];
  for (const { turnId, status, sessionId, reply } of turns.values()) {
    const isEnded = status === "completed" || status === "failed";
    if (!isEnded) broken.push(breach("each turn ends exactly once", `it is ${status}`, turnId, sessionId));
    const messages = sessions.get(sessionId)?.messages.filter((message) => message.turnId === turnId) ?? [];
    const [asked, ...more] = messages.filter(({ role }) => role === "user");
    if (!asked || more.length > 0)
      broken.push(breach("order in each session", `it has ${asked ? more.length + 1 : 0} messages`, turnId, sessionId));
    // The echo agent repeats its message.
    if (status === "completed" && asked && reply !== asked.text)
      broken.push(breach("a reply is its message's", "it has another", turnId, sessionId));
  }
  return broken;
}

const IN_ORDER = "order in each session";

/** The messages of one session: in order, once each, each reply after its message, and in the order of the acknowledgements. */
function verifySession(session: FoundSession, { turns }: Found, ordersOf: ReadonlyMap<string, Order>): Broken[] {
  const { sessionId, messages, messageCount } = session;
  const broken: Broken[] = [];
  const say = (words: string, ...ids: string[]) => broken.push(breach(IN_ORDER, words, sessionId, ...ids));
  if (messages.length !== messageCount) say(`it counts ${messageCount} messages and shows ${messages.length}`);
  const ids = new Set<string>();
  const replies = new Map<string, number>();
  const asked = new Set<string>();
  let before = 0;
  for (const { messageId, seq, role, turnId } of messages) {
    if (ids.has(messageId)) say("a message is there twice", messageId);
    ids.add(messageId);
    if (seq <= before) say(`a message with seq ${seq} is behind one with ${before}`, messageId);
    before = Math.max(before, seq);
    if (role === "user") asked.add(turnId);
    else if (!asked.has(turnId)) say("a reply is before its message", messageId, turnId);
    else replies.set(turnId, (replies.get(turnId) ?? 0) + 1);
  }
  for (const turnId of asked) {
    const turn = turns.get(turnId);
    const count = replies.get(turnId) ?? 0;
    if (!turn)
      broken.push(breach("every acknowledged id exists", "a message's turn cannot be read", turnId, sessionId));
    else if (count > 1)
      broken.push(breach("each turn ends exactly once", `it has ${count} replies`, turnId, sessionId));
    else if (turn.status === "completed" && count === 0) say("a turn that completed has no reply", turnId);
  }
  return [...broken, ...verifySentOrder(session, ordersOf)];
}

/** A message that was acknowledged before another was sent precedes it. */
function verifySentOrder({ sessionId, messages }: FoundSession, ordersOf: ReadonlyMap<string, Order>): Broken[] {
  const broken: Broken[] = [];
  let [soonest, soonestMarker] = [Number.POSITIVE_INFINITY, ""];
  for (const { role, text } of messages.toReversed()) {
    if (role !== "user") continue;
    for (const marker of markersIn(text).toReversed()) {
      const order = ordersOf.get(marker);
      // The order of the events of a beat is not checked.
      if (!order || order.kind === "wake") continue;
      if (order.sentAt > soonest)
        broken.push(
          breach(
            IN_ORDER,
            "what was sent later is before what was acknowledged sooner",
            sessionId,
            marker,
            soonestMarker,
          ),
        );
      if (order.ackedAt !== undefined && order.ackedAt < soonest) [soonest, soonestMarker] = [order.ackedAt, marker];
    }
  }
  return broken;
}

const ENDS: Readonly<Record<string, string>> = {
  "turn.completed": "completed",
  "turn.failed": "failed",
  "turn.cancelled": "cancelled",
};

/**
 * The stream of one session: no gap, no repeat; each turn starts once per attempt, from the queue; it ends once, as the turn says; and never two
 * turns at a time.
 */
function verifyJournal({ sessionId, from, entries }: FoundJournal, { turns }: Found): Broken[] {
  const broken: Broken[] = [];
  const say = (words: string, ...ids: (string | undefined)[]) =>
    broken.push(breach("order in each session", words, sessionId, ...ids));
  const told = new Map<string, Told>();
  let due = from;
  let running: string | undefined;
  for (const { seq, turnId, name, attempt } of entries) {
    if (seq !== due) say(`seq ${seq} came where ${due} was due`);
    due = seq + 1;
    if (turnId === undefined) continue;
    // The start of a turn may be older than the stored entries.
    const turn = told.get(turnId) ?? new Told(from === 1 || name === "message.created");
    told.set(turnId, turn);
    if (name === "turn.queued" && !turn.mayQueue(running === turnId)) say("a turn was queued that did not run", turnId);
    if (name === "turn.started") {
      if (!turn.mayStart(attempt)) say(`attempt ${attempt} began where it could not`, turnId);
      if (running !== undefined && running !== turnId) say("a turn began while another ran", turnId, running);
      running = turnId;
    } else if (running === turnId && (name === "turn.queued" || name in ENDS)) running = undefined;
    turn.note(name);
  }
  for (const [turnId, { ends }] of told) {
    const status = turns.get(turnId)?.status;
    if (ends.length === 1 && (status === undefined || ends[0] === status)) continue;
    const words =
      ends.length === 1 ? `it is ${status}, and its stream says ${ends[0]}` : `its stream has ${ends.length} ends`;
    broken.push(breach("each turn ends exactly once", words, turnId, sessionId, ...ends));
  }
  return broken;
}

class Told {
  readonly ends: string[] = [];
  readonly #isWhole: boolean;
  #isQueued = false;
  #attempts = 0;

  constructor(isWhole: boolean) {
    this.#isWhole = isWhole;
  }

  /** It is new, or was released while it ran. */
  mayQueue(isRunning: boolean): boolean {
    return !this.#isWhole || (!this.#isQueued && (isRunning || this.#attempts === 0));
  }

  mayStart(attempt: number | undefined): boolean {
    return !this.#isWhole || (this.#isQueued && attempt === this.#attempts + 1);
  }

  note(name: string): void {
    const end = ENDS[name];
    if (end !== undefined) this.ends.push(end);
    if (name === "turn.queued") this.#isQueued = true;
    if (name === "turn.started") {
      this.#isQueued = false;
      this.#attempts++;
    }
  }
}
