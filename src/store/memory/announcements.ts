import { IdTable, NOWHERE, Roster } from "#kit/tables.ts";
import type { Announcement, AnnouncementClaim, ClaimedAnnouncement, Store } from "#store/store.ts";
import { Heap } from "./heap.ts";
import type { TurnRow } from "./rows.ts";
import type { SessionRow } from "./session-row.ts";
import type { State } from "./state.ts";

type AnnouncementRow = Announcement & {
  readonly sessionOrdinal: number;
  /** Its place among all: the oldest goes first. */
  readonly order: number;
  /** Monotonic time at which it can be tried again. */
  due: number;
  status: "waiting" | "claimed" | "gone";
  node: string;
  fence: number;
  leaseEnds: number;
  /** Its place among those that are claimed. */
  at: number;
};
type ChannelQueue = { ready: Heap<AnnouncementRow>; delayed: Heap<AnnouncementRow> };

/** Replies on their way to channels, each channel with a queue of its own: a dead one holds up nobody else. */
export class Announcements {
  readonly #byTurn = new IdTable<AnnouncementRow>();
  readonly #ofSession = new Map<number, AnnouncementRow[]>();
  readonly #channels = new Map<string, ChannelQueue>();
  readonly #claimed = new Roster<AnnouncementRow>();
  #orders = 0;

  get size(): number {
    return this.#byTurn.size;
  }

  has(session: SessionRow): boolean {
    return this.#ofSession.size > 0 && this.#ofSession.has(session.ordinal);
  }

  hasOf(turnId: string): boolean {
    return this.#byTurn.size > 0 && this.#byTurn.get(turnId) !== undefined;
  }

  add(announcement: Announcement, session: SessionRow): void {
    const held = { status: "waiting", due: 0, node: "", fence: 0, leaseEnds: 0, at: NOWHERE } as const;
    const row = { ...announcement, sessionOrdinal: session.ordinal, order: ++this.#orders, ...held };
    this.#byTurn.set(row.turnId, row);
    const others = this.#ofSession.get(session.ordinal);
    if (others) others.push(row);
    else this.#ofSession.set(session.ordinal, [row]);
    this.#queueOf(row.channel).ready.push(row);
  }

  claim(
    { node, leaseMs, limit, freeOf }: Parameters<Store["claimAnnouncements"]>[0],
    time: number,
  ): { announcements: ClaimedAnnouncement[]; nextDueInMs: number | undefined } {
    const open: { ready: Heap<AnnouncementRow>; free: number }[] = [];
    let nextDue = Infinity;
    for (const [channel, { ready, delayed }] of this.#channels) {
      for (let row = headOf(delayed); row && row.due <= time; row = headOf(delayed)) ready.push(delayed.pop() ?? row);
      nextDue = Math.min(nextDue, delayed.peek()?.due ?? Infinity);
      if (headOf(ready)) open.push({ ready, free: freeOf(channel) });
      else if (delayed.size === 0) this.#channels.delete(channel);
    }
    const announcements: ClaimedAnnouncement[] = [];
    while (announcements.length < limit) {
      const row = shiftOldest(open);
      if (!row) break;
      Object.assign(row, { status: "claimed", node, leaseEnds: time + leaseMs });
      this.#claimed.add(row);
      announcements.push({
        claim: { turnId: row.turnId, node, fence: ++row.fence },
        announcement: announcementOf(row),
      });
    }
    return { announcements, nextDueInMs: nextDue === Infinity ? undefined : nextDue - time };
  }

  /** The announcement, when the claim still holds. */
  ofClaim({ turnId, node, fence }: AnnouncementClaim): AnnouncementRow | undefined {
    const row = this.#byTurn.get(turnId);
    return row?.status === "claimed" && row.node === node && row.fence === fence ? row : undefined;
  }

  end(row: AnnouncementRow): void {
    this.#forget(row);
    const others = this.#ofSession.get(row.sessionOrdinal)?.filter((other) => other !== row) ?? [];
    if (others.length > 0) this.#ofSession.set(row.sessionOrdinal, others);
    else this.#ofSession.delete(row.sessionOrdinal);
  }

  retry(row: AnnouncementRow, due: number): void {
    row.attempts++;
    row.due = due;
    row.status = "waiting";
    this.#claimed.delete(row);
    this.#queueOf(row.channel).delayed.push(row);
  }

  /** Takes back what is claimed by a node that let its lease end. True when there was any. */
  freeLost(time: number): boolean {
    let isFreed = false;
    for (const row of this.#claimed.list()) {
      if (row.leaseEnds > time) continue;
      row.status = "waiting";
      this.#claimed.delete(row);
      this.#queueOf(row.channel).ready.push(row);
      isFreed = true;
    }
    return isFreed;
  }

  /** Those of a session that is erased. */
  forgetOf(session: SessionRow): void {
    if (!this.has(session)) return;
    for (const row of this.#ofSession.get(session.ordinal) ?? []) this.#forget(row);
    this.#ofSession.delete(session.ordinal);
  }

  /** Out of its queue it goes when it has come to its head. */
  #forget(row: AnnouncementRow): void {
    row.status = "gone";
    this.#claimed.delete(row);
    this.#byTurn.delete(row.turnId);
  }

  #queueOf(channel: string): ChannelQueue {
    let queue = this.#channels.get(channel);
    if (!queue) {
      queue = { ready: new Heap(({ order }) => order), delayed: new Heap(({ due }) => due) };
      this.#channels.set(channel, queue);
    }
    return queue;
  }
}

const headOf = (heap: Heap<AnnouncementRow>): AnnouncementRow | undefined => {
  let head = heap.peek();
  while (head?.status === "gone") {
    heap.pop();
    head = heap.peek();
  }
  return head;
};

const shiftOldest = (open: { ready: Heap<AnnouncementRow>; free: number }[]): AnnouncementRow | undefined => {
  let oldest: { ready: Heap<AnnouncementRow>; free: number } | undefined;
  let order = Infinity;
  for (const channel of open) {
    const head = channel.free > 0 ? headOf(channel.ready) : undefined;
    if (head && head.order < order) {
      oldest = channel;
      order = head.order;
    }
  }
  if (!oldest) return undefined;
  oldest.free--;
  return oldest.ready.pop();
};

const announcementOf = (row: AnnouncementRow): Announcement => ({
  turnId: row.turnId,
  sessionId: row.sessionId,
  agent: row.agent,
  channel: row.channel,
  hops: row.hops,
  deliveryId: row.deliveryId,
  createdAt: row.createdAt,
  attempts: row.attempts,
});

/** The turn has completed, and its reply is to go to a channel. */
export const announce = (state: State, row: TurnRow, createdAt: number): void => {
  const { turnId, sessionId, agent, deliveryId, announce: to } = row;
  if (to?.channel === undefined) return;
  const { channel, hops } = to;
  state.announcements.add({ turnId, sessionId, agent, channel, hops, deliveryId, createdAt, attempts: 0 }, row.session);
};

export const tellAnnouncement = (state: State): void => {
  for (const watcher of state.watchers) watcher.announcement();
};

export const announcementMethods = (state: State): Pick<Store, "claimAnnouncements" | "endAnnouncement"> => ({
  claimAnnouncements: async (request) => state.announcements.claim(request, state.clock.monotonic()),
  endAnnouncement: async (claim, { retryInMs, step }) => {
    const row = state.announcements.ofClaim(claim);
    if (!row) return false;
    if (retryInMs === undefined) state.announcements.end(row);
    else state.announcements.retry(row, state.clock.monotonic() + retryInMs);
    if (row.deliveryId !== undefined) state.deliveries.addStep(row.deliveryId, step);
    return true;
  },
});
