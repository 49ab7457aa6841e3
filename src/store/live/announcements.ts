import type { AnnouncementRecord, Records } from "#store/rules/records.ts";
import { DueTimes } from "./due-times.ts";
import { Ordered } from "./ordered.ts";
import { type Scale, weighAnnouncement } from "./weights.ts";

export class Announcements {
  readonly #scale: Scale;
  readonly #byTurn = new Map<string, AnnouncementRecord>();
  readonly #bySession = new Map<number, Set<string>>();
  /** By channel, those that can be claimed. */
  readonly #ready = new Map<string, Ordered<number, string>>();
  readonly #due = new DueTimes();
  readonly #leases = new DueTimes();

  constructor(scale: Scale) {
    this.#scale = scale;
  }

  get size(): number {
    return this.#byTurn.size;
  }

  /** The channels of all that wait or are claimed. */
  channels(): string[] {
    return [...new Set([...this.#byTurn.values()].map(({ announcement }) => announcement.channel))];
  }

  readonly records: Records["announcements"] = {
    find: (turnId) => this.#byTurn.get(turnId),
    put: (record) => {
      const { turnId } = record.announcement;
      this.#move(record, this.#byTurn.get(turnId), record);
      this.#byTurn.set(turnId, record);
      const ofSession = this.#bySession.get(record.ordinal) ?? new Set();
      this.#bySession.set(record.ordinal, ofSession.add(turnId));
    },
    delete: ({ announcement: { turnId }, ordinal }) => {
      const before = this.#byTurn.get(turnId);
      if (before) this.#move(before, before, undefined);
      this.#byTurn.delete(turnId);
      const ofSession = this.#bySession.get(ordinal);
      if (ofSession?.delete(turnId) && ofSession.size === 0) this.#bySession.delete(ordinal);
    },
    ofSession: (ordinal) => this.#all([...(this.#bySession.get(ordinal) ?? [])]),
    readyChannels: () => [...this.#ready.keys()],
    firstReady: (channel) => {
      const turnId = this.#ready.get(channel)?.first();
      return turnId === undefined ? undefined : this.#byTurn.get(turnId);
    },
    dueBy: (time) => this.#all(this.#due.by(time)),
    nextDueAt: () => this.#due.next(),
    leaseEnded: (time) => this.#all(this.#leases.by(time)),
  };

  #all(turnIds: readonly string[]): AnnouncementRecord[] {
    return turnIds.flatMap((turnId) => this.#byTurn.get(turnId) ?? []);
  }

  /** Keeps what is told of an announcement elsewhere: its weight, and when it can be claimed. */
  #move(
    { announcement: { turnId, channel }, place }: AnnouncementRecord,
    from?: AnnouncementRecord,
    to?: AnnouncementRecord,
  ) {
    this.#scale.weigh(from ? weighAnnouncement(from) : 0, to ? weighAnnouncement(to) : 0);
    this.#due.move(turnId, from?.dueAt, to?.dueAt);
    this.#leases.move(turnId, from?.lease?.endsAt, to?.lease?.endsAt);
    const ready = this.#ready.get(channel) ?? new Ordered<number, string>();
    if (to && !to.lease && to.dueAt === undefined) ready.set(place, turnId);
    else ready.delete(place);
    if (ready.size > 0) this.#ready.set(channel, ready);
    else this.#ready.delete(channel);
  }
}
