import type { Announcement, AnnouncementClaim, ClaimedAnnouncement, DeliveryStep } from "#store/store.ts";
import { bytesOf, freeBytesOf, toSql } from "../text.ts";
import type { Parts } from "./parts.ts";
import type { TurnRow } from "./rows.ts";
import type { State } from "./state.ts";
import type { TotalsRow } from "./totals.ts";

const READY = 0;
const CLAIMED = 1;
const DELAYED = 2;

/** What an announcement weighs. */
const ANNOUNCEMENT_BYTES = 500;

const READ = `place, ${freeBytesOf("channel")}, ${bytesOf("turn_id")}, fence, attempts, ${bytesOf("body")}`;
type Row = [place: number, channel: string, turnId: string, fence: number, attempts: number, body: string];
/** What of it never changes, beside its channel. */
type Body = [sessionId: string, agent: string, hops: number, deliveryId: string | null, createdAt: number];

/** What may be claimed: so many of each channel, of others none. */
export type AnnouncementRequest = {
  node: string;
  leaseMs: number;
  limit: number;
  free: readonly (readonly [channel: string, count: number])[];
};

/** Replies on their way to channels: few, but where a channel is dead. */
export class Announcements {
  readonly #offset: number;
  readonly #totals: TotalsRow;
  readonly #add;
  readonly #wake;
  readonly #nextDue;
  readonly #ready;
  readonly #claim;
  readonly #ofClaim;
  readonly #retry;
  readonly #delete;
  readonly #ofSession;
  readonly #ofTurn;
  readonly #deleteOf;
  readonly #freeLost;
  readonly #freeAll;
  readonly #channels;

  constructor({ db, totals, moment }: Parts) {
    this.#offset = moment.offset;
    this.#totals = totals;
    this.#add = db.run("INSERT INTO announcements (turn_id, session, channel, body) VALUES (?, ?, ?, ?)");
    this.#wake = db.run(`UPDATE announcements SET state = ${READY} WHERE state = ${DELAYED} AND due <= ?`);
    this.#nextDue = db.query(`SELECT min(due) FROM announcements WHERE state = ${DELAYED}`);
    this.#ready = db.query(
      `SELECT ${READ} FROM announcements WHERE state = ${READY} AND channel = ? ORDER BY place LIMIT ?`,
    );
    this.#claim = db.run(
      `UPDATE announcements SET state = ${CLAIMED}, node = ?, fence = fence + 1, lease_ends = ? WHERE place = ?`,
    );
    this.#ofClaim = db.query(
      `SELECT ${READ} FROM announcements WHERE turn_id = ? AND state = ${CLAIMED} AND node = ? AND fence = ?`,
    );
    this.#retry = db.run(
      `UPDATE announcements SET state = ${DELAYED}, due = ?, attempts = attempts + 1 WHERE place = ?`,
    );
    this.#delete = db.run("DELETE FROM announcements WHERE place = ?");
    this.#ofSession = db.query("SELECT 1 FROM announcements WHERE session = ? LIMIT 1");
    this.#ofTurn = db.query("SELECT 1 FROM announcements WHERE turn_id = ?");
    this.#deleteOf = db.run("DELETE FROM announcements WHERE session = ?");
    this.#freeLost = db.run(`UPDATE announcements SET state = ${READY} WHERE state = ${CLAIMED} AND lease_ends <= ?`);
    this.#freeAll = db.run(`UPDATE announcements SET state = ${READY} WHERE state = ${CLAIMED}`);
    this.#channels = db.query(`SELECT DISTINCT ${freeBytesOf("channel")} FROM announcements`);
    [totals.counts.announcements] = db.query("SELECT count(*) FROM announcements").get<[number]>([]) ?? [0];
  }

  add({ turnId, sessionId, agent, channel, hops, deliveryId, createdAt }: NewAnnouncement, session: number): void {
    const body = [sessionId, agent, hops, deliveryId ?? null, createdAt] satisfies Body;
    this.#add([turnId, session, toSql(channel), JSON.stringify(body)]);
    this.#count(1);
  }

  channels(): string[] {
    if (this.#isEmpty) return [];
    return this.#channels.all<[string]>([]).map(([channel]) => channel);
  }

  /** Some of this session are on their way. */
  hasOf(session: number): boolean {
    return !this.#isEmpty && this.#ofSession.get([session]) !== undefined;
  }

  hasOfTurn(turnId: string): boolean {
    return !this.#isEmpty && this.#ofTurn.get([turnId]) !== undefined;
  }

  /** Those of a session that is erased. */
  forgetOf(session: number): void {
    if (!this.#isEmpty) this.#count(-this.#deleteOf([session]));
  }

  claim({ node, leaseMs, limit, free }: AnnouncementRequest, time: number) {
    const announcements: ClaimedAnnouncement[] = [];
    if (this.#isEmpty) return { announcements, nextDueInMs: undefined };
    const kept = time + this.#offset;
    this.#wake([kept]);
    const ready = free.flatMap(([channel, count]) =>
      count > 0 ? this.#ready.all<Row>([toSql(channel), Math.min(count, limit)]) : [],
    );
    for (const row of ready.sort(([a], [b]) => a - b).slice(0, limit)) {
      const [place, , turnId, fence] = row;
      this.#claim([node, kept + leaseMs, place]);
      announcements.push({ claim: { turnId, node, fence: fence + 1 }, announcement: decode(row) });
    }
    const [nextDue] = this.#nextDue.get<[number | null]>([]) ?? [null];
    return { announcements, nextDueInMs: nextDue === null ? undefined : nextDue - kept };
  }

  /** Ends it, or gives it back to be tried again at a time. Answers it when the claim held. */
  end({ turnId, node, fence }: AnnouncementClaim, retryAt: number | undefined): Announcement | undefined {
    const row = this.#ofClaim.get<Row>([turnId, node, fence]);
    if (!row) return undefined;
    if (retryAt !== undefined) {
      this.#retry([retryAt + this.#offset, row[0]]);
    } else {
      this.#delete([row[0]]);
      this.#count(-1);
    }
    return decode(row);
  }

  /** Takes back what is claimed by a node that let its lease end. True when there was any. */
  freeLost(time: number): boolean {
    return !this.#isEmpty && this.#freeLost([time + this.#offset]) > 0;
  }

  /** At the opening of the file: nobody sends what its predecessor claimed. Answers how many those were. */
  takeBack(): number {
    return this.#freeAll([]);
  }

  get #isEmpty(): boolean {
    return this.#totals.counts.announcements === 0;
  }

  #count(by: number): void {
    this.#totals.counts.announcements += by;
    this.#totals.addBytes(by * ANNOUNCEMENT_BYTES);
  }
}

type NewAnnouncement = Omit<Announcement, "attempts">;

const decode = ([, channel, turnId, , attempts, body]: Row): Announcement => {
  const [sessionId, agent, hops, deliveryId, createdAt] = JSON.parse(body) as Body;
  const of = { turnId, sessionId, agent, channel, hops };
  return { ...of, deliveryId: deliveryId ?? undefined, createdAt, attempts };
};

/** The turn has completed, and its reply is to go to a channel. */
export const announce = (state: State, row: TurnRow, createdAt: number): void => {
  const { turnId, sessionId, agent, deliveryId, announce: to } = row;
  if (to?.channel === undefined) return;
  const { channel, hops } = to;
  state.announcements.add({ turnId, sessionId, agent, channel, hops, deliveryId, createdAt }, row.session.ordinal);
};

type AnnouncementEnd = { claim: AnnouncementClaim; retryInMs: number | undefined; step: DeliveryStep };

export const announcementMethods = {
  write: {
    claimAnnouncements: (state: State, request: AnnouncementRequest, time: number) =>
      state.announcements.claim(request, time),

    endAnnouncement: (state: State, { claim, retryInMs, step }: AnnouncementEnd, time: number): boolean => {
      const ended = state.announcements.end(claim, retryInMs === undefined ? undefined : time + retryInMs);
      if (ended?.deliveryId !== undefined) state.deliveries.addStep(ended.deliveryId, step);
      return ended !== undefined;
    },
  },
  read: {
    /** Channels that an announcement waits for. */
    waitingChannels: (state: State): readonly string[] => state.announcements.channels(),
  },
};
