import type { Claim, Entry, MoreUsage, Turn, TurnEnd, TurnOrder, Usage } from "#store/store.ts";
import { cutOf } from "./model-ageing.ts";
import { createInboundModel } from "./model-inbound.ts";
import { LEASE_MS, LOST, NO_USAGE } from "./world.ts";

const ERASED = { name: "turn-failed", detail: "Its session was deleted." } as const;

/** The store in a few lines: slow and obvious, and without any of its guarantees about cost. */
export type ModelTurn = {
  session: ModelSession;
  /** As the store should answer it. */
  turn: Turn;
  order: TurnOrder;
  isCancelled: boolean;
  /** When it may be claimed, and until when its claim holds. */
  due: number;
  leaseEnds: number;
  fence: number;
};
/** A compaction's place in a queue. */
export type ModelPlace = { session: ModelSession; turn: undefined; claim: Claim; isFirst: boolean; leaseEnds: number };
export type ModelSession = {
  id: string;
  agent: string;
  queue: (ModelTurn | ModelPlace)[];
  entries: string[];
  /** When each of them was appended. */
  times: number[];
  /** The first of them that is not erased. */
  firstSeq: number;
  /** Newest first; the last `compacted` of them are compacted, and the last `erased` are gone. */
  messages: string[];
  compacted: number;
  erased: number;
  /** The summary covers all up to here. */
  through: number;
  summary: string | undefined;
  usage: Usage;
};

export const createModel = (maxAttempts: number) => {
  const sessions = new Map<string, ModelSession>();
  const turns = new Map<string, ModelTurn>();
  const keys = new Map<string, string>();
  const inbound = createInboundModel((turnId) => turns.get(turnId)?.turn);

  const tell = ({ session, turn }: ModelTurn, name: Entry["name"], now: number) => {
    session.times.push(now);
    session.entries.push(`${name} ${turn.turnId}`);
  };
  const say = (session: ModelSession, role: string, text: string) => session.messages.unshift(`${role}: ${text}`);
  const turnsIn = ({ queue }: ModelSession) => queue.flatMap((of) => (of.turn ? [of] : []));
  const queuedOf = (session: ModelSession) => turnsIn(session).filter(({ turn }) => turn.status === "queued");
  const waitingOf = ({ queue }: ModelSession) => queue.filter(({ turn }) => turn?.status !== "running");
  const readOf = ({ messages, compacted }: ModelSession) => messages.slice(0, messages.length - compacted);
  const bytesOf = (session: ModelSession) =>
    readOf(session).reduce(
      (sum, message) => sum + Buffer.byteLength(message.slice(message.indexOf(": ") + 2)),
      Buffer.byteLength(session.summary ?? ""),
    );

  const use = ({ turn, session }: ModelTurn, { usage }: Pick<TurnEnd, "usage">) => {
    if (!usage) return;
    const { input, output, more } = usage.usage;
    const add = (to: Usage) => {
      const sum = { input: to.input + input, output: to.output + output };
      if (!more && !to.more) return sum;
      const of = (name: keyof MoreUsage) => (more?.[name] ?? 0) + (to.more?.[name] ?? 0);
      return { ...sum, more: { cached: of("cached"), reasoning: of("reasoning"), cost: of("cost") } };
    };
    turn.usage = add(turn.usage ?? NO_USAGE);
    session.usage = add(session.usage);
  };

  const end = (of: ModelTurn, how: TurnEnd) => {
    const { turn, session } = of;
    const isKept = turn.status === "running" && (how.status === "completed" || how.reply !== "");
    if (isKept) {
      tell(of, "message.completed", how.now);
      say(session, "assistant", how.reply);
    }
    use(of, how);
    tell(of, `turn.${how.status}`, how.now);
    session.queue.splice(session.queue.indexOf(of), 1);
    const { now: endedAt, status, error } = how;
    Object.assign(turn, {
      status,
      endedAt,
      error,
      usage: turn.usage ?? NO_USAGE,
      model: how.model ?? turn.model,
      reply: isKept ? how.reply : undefined,
    });
    inbound.ended(turn, of.order, how);
  };
  const endQueued = (of: ModelTurn, now: number, status: "cancelled" | "failed", error?: Turn["error"]) =>
    end(of, { now, status, reply: "", error, usage: undefined });

  const giveBack = (of: ModelTurn, now: number, due: number, how: Pick<TurnEnd, "usage">) => {
    use(of, how);
    if (of.isCancelled) return end(of, { now, status: "cancelled", reply: "", error: undefined, usage: undefined });
    of.turn.status = "queued";
    of.due = due;
    tell(of, "turn.queued", now);
  };

  return {
    sessions,
    turns,
    inbound,
    queuedOf,
    waitingOf,
    readOf,
    bytesOf,
    end,
    giveBack,
    withStatus: (status: Turn["status"]) => [...turns.values()].filter(({ turn }) => turn.status === status),

    /** The error that the order is refused with; the turn that it repeats; or undefined when it starts one. */
    check({ session: { sessionId, agent }, idempotency, limits }: TurnOrder): string | ModelTurn | undefined {
      const known = idempotency && keys.get(idempotency.key);
      if (known) {
        const [turnId = "", hash] = known.split(" ");
        return hash !== idempotency.hash ? "idempotency-mismatch" : (turns.get(turnId) ?? "turn-not-found");
      }
      const session = sessions.get(sessionId);
      if (!session) return undefined;
      if (session.agent !== agent) return "session-conflict";
      if (queuedOf(session).length >= limits.turnsPerSession) return "session-busy";
      return readOf(session).length >= limits.messagesPerSession ? "session-full" : undefined;
    },

    start(order: TurnOrder): Turn {
      const { sessionId: id, agent } = order.session;
      const counts = { firstSeq: 1, compacted: 0, erased: 0, through: 0 };
      const none = { queue: [], entries: [], times: [], messages: [], ...counts, summary: undefined, usage: NO_USAGE };
      const fresh: ModelSession = { id, agent, ...none };
      const session = sessions.get(id) ?? fresh;
      sessions.set(id, session);
      const { turnId, messageId, surface, caller, model, skillIds, now: createdAt } = order;
      const seq = session.entries.length + 2;
      const of = { turnId, sessionId: id, agent, surface, caller, createdAt, model, skillIds, messageId, seq };
      const unknown = {
        startedAt: undefined,
        endedAt: undefined,
        reply: undefined,
        error: undefined,
        usage: undefined,
      };
      const turn: Turn = { ...of, ...unknown, status: "queued", attempt: 0, deliveryId: order.delivery?.deliveryId };
      const made: ModelTurn = { session, turn, order, isCancelled: false, due: 0, leaseEnds: 0, fence: 0 };
      tell(made, "message.created", createdAt);
      tell(made, "turn.queued", createdAt);
      say(session, "user", order.text);
      session.queue.push(made);
      turns.set(turnId, made);
      inbound.started(order);
      if (order.idempotency) keys.set(order.idempotency.key, `${turnId} ${order.idempotency.hash}`);
      return turn;
    },

    /** The turns that may be claimed at a time. */
    claimable: (time: number): ModelTurn[] =>
      [...sessions.values()].flatMap(({ queue: [head] }) =>
        head &&
        "due" in head &&
        head.turn.status === "queued" &&
        head.due <= time &&
        !inbound.paused.has(head.turn.agent)
          ? [head]
          : [],
      ),

    /** Leaves the queue; the first of it compacts all there is. True when that is done. */
    compact(place: ModelPlace, summary: string | undefined, now: number): boolean {
      const { session } = place;
      const at = sessions.get(session.id) === session ? session.queue.indexOf(place) : -1;
      if (at < 0) return false;
      session.queue.splice(at, 1);
      if (summary === undefined || at > 0) return summary === undefined;
      session.through = session.entries.length;
      session.entries.push("session.compacted ");
      session.times.push(now);
      session.compacted = session.messages.length;
      session.summary = summary;
      return true;
    },

    claim(of: ModelTurn, now: number, time: number, fence: number): void {
      Object.assign(of.turn, { status: "running", attempt: of.turn.attempt + 1, startedAt: now });
      Object.assign(of, { leaseEnds: time + LEASE_MS, fence });
      tell(of, "turn.started", now);
      tell(of, "message.created", now);
    },

    cancel(of: ModelTurn, now: number): void {
      if (of.turn.status === "running") of.isCancelled = true;
      else endQueued(of, now, "cancelled");
    },

    failQueued(agent: string, now: number, error: Turn["error"]): number {
      const failed = [...sessions.values()].flatMap((session) => (session.agent === agent ? queuedOf(session) : []));
      for (const of of failed) endQueued(of, now, "failed", error);
      return failed.length;
    },

    remove(id: string, now: number): boolean {
      const session = sessions.get(id);
      const open = session ? turnsIn(session).reverse() : [];
      for (const of of open.filter(({ turn }) => turn.status === "queued")) endQueued(of, now, "cancelled");
      for (const { turn, order } of open.filter(({ turn }) => turn.status === "running")) {
        inbound.ended(turn, order, { now, status: "failed", error: ERASED });
      }
      inbound.erased(id);
      for (const [turnId, { turn }] of turns) if (turn.sessionId === id) turns.delete(turnId);
      return sessions.delete(id);
    },

    /** Gives back or ends the turns whose lease has ended. */
    sweep(now: number, time: number): void {
      for (const session of sessions.values()) {
        session.queue = session.queue.filter((of) => of.turn !== undefined || of.leaseEnds > time);
      }
      for (const [of] of [...sessions.values()].map(turnsIn)) {
        if (of?.turn.status !== "running" || of.leaseEnds > time) continue;
        if (of.turn.attempt < maxAttempts || of.isCancelled) giveBack(of, now, time, { usage: undefined });
        else end(of, { now, status: "failed", reply: "", error: LOST, usage: undefined });
      }
    },

    /** Erases the sessions that rest and the heads of the others, with all that belongs to them. */
    age(now: number, boundOf: (sessionId: string) => number): void {
      for (const session of [...sessions.values()]) {
        const bound = boundOf(session.id);
        const isAnnounced = (turnId: string) => inbound.announcements.has(turnId);
        const rests = session.queue.length === 0 && !inbound.isAnnouncing(session.id);
        if (rests && (session.times.at(-1) ?? 0) <= bound) {
          this.remove(session.id, now);
          continue;
        }
        const cut = cutOf(session, bound, turns, isAnnounced);
        const gone = session.entries.slice(session.firstSeq - 1, cut - 1);
        session.erased += gone.filter((entry) => entry.startsWith("message.completed")).length;
        for (const [turnId, { turn }] of turns) {
          if (turn.sessionId !== session.id || turn.seq > cut) continue;
          session.erased++;
          turns.delete(turnId);
          inbound.erasedTurn(turnId);
        }
        session.firstSeq = cut;
      }
    },
  };
};

export type Model = ReturnType<typeof createModel>;
