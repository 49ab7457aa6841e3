import type { Follower, Taker } from "#core/follow.ts";
import type { GatewayStream } from "#core/gateway-stream.ts";
import type { DeletedAt, SessionStream, SessionTaker, WrittenReply } from "#core/sessions/session-streams.ts";
import type { Entry, GatewayEntry, SessionRef, Turn } from "#store/store.ts";
import type { Frame } from "./frame.ts";
import type { Pump, PushSink, Source } from "./pump.ts";
import { isPlaceIn, type PushFrames, placeOfCursor, type StreamRange } from "./pushes.ts";

/** The connection of a subscription. */
export type Owner = {
  readonly sink: PushSink;
  readonly pump: Pump;
  readonly frames: PushFrames;
  /** The agents that the connection is subscribed to. */
  readonly agents: { has(name: string): boolean };
  /** True if the connection may read the sessions of this agent. A session that does not exist yet has none. */
  mayRead(agent: string | undefined): boolean;
  /** Called when a subscription has ended. */
  forget(subscription: Subscription): void;
  /** Pushes the end of a deleted session. */
  deleted(session: SessionRef, end: DeletedAt): void;
};

/** The call that started a turn. Its pushes are sent after its answer. */
export type PendingCall = { pushAfterAnswer(frame: Frame): void };

/** The sender of a message. It gets the end of its turn, and with `stream` also the pieces of the reply. */
export type Sender = Pick<Turn, "turnId" | "seq"> & { stream: boolean; call: PendingCall };

const PAGE = 32;

/** A connection's place in a stream. Entries that do not fit are sent later, by the pump. */
abstract class Subscription implements Source {
  readonly owner: Owner;
  abstract readonly follower: Pick<Follower<Entry | GatewayEntry>, "phase" | "seq" | "newest" | "page" | "leave">;
  /** The subscriber gets the entries after this one. */
  protected after = 0;
  /** True if the client's cursor is not a valid place in this stream: the client gets a `stream.reset` first. */
  protected isReset = false;

  constructor(owner: Owner) {
    this.owner = owner;
  }

  get isFull(): boolean {
    return this.owner.sink.isFull;
  }

  get hasRoom(): boolean {
    return this.owner.sink.hasRoom;
  }

  abstract get isSubscribed(): boolean;

  abstract onGap(before: number): void;

  /** Follows the stream after the entry `after`. */
  protected abstract start(): void;

  /** Starts at the cursor, or at the end of the stream if it is not a place in the stream. Without a cursor, an existing subscription continues from its place. */
  subscribe(cursor: string | null, range: StreamRange): void {
    const place = cursor === null ? undefined : placeOfCursor(cursor);
    if (!place && this.isSubscribed) return;
    this.isReset = place !== undefined && !isPlaceIn(place, range);
    // Without a cursor, the subscription starts after the entries that were published since it was created.
    if (place) this.after = this.isReset ? range.last : place.seq;
    else this.after = Math.max(range.last, this.follower.newest);
    this.start();
  }

  /** The place of the subscriber in the stream. */
  get seq(): number {
    return Math.max(this.after, this.follower.seq);
  }

  onBackfill(): void {
    this.owner.pump.add(this);
  }

  page(): Promise<boolean> {
    if (this.isReset) this.onGap(this.after);
    this.isReset = false;
    return this.follower.page(PAGE);
  }

  leave(): void {
    if (this.follower.phase === "closed") return;
    this.isReset = false;
    this.follower.leave();
    this.owner.pump.delete(this);
    this.owner.forget(this);
  }
}

export type { Subscription };

export class GatewaySubscription extends Subscription implements Taker<GatewayEntry> {
  readonly follower: Follower<GatewayEntry>;

  constructor(owner: Owner, stream: GatewayStream) {
    super(owner);
    this.follower = stream.follow(this);
  }

  get isSubscribed(): boolean {
    return this.follower.phase !== "idle";
  }

  protected override start(): void {
    this.follower.start(this.after);
  }

  wants(): boolean {
    return true;
  }

  take(entry: GatewayEntry): void {
    this.owner.sink.push(this.owner.frames.gateway(entry));
  }

  onGap(before: number): void {
    const { sink, frames } = this.owner;
    sink.push(frames.reset(frames.gatewayCursor(before), undefined));
  }
}

/**
 * A subscriber to a session gets every entry. The sender of a message gets the end of its turn, once even if the connection is also subscribed. The
 * subscription ends when the connection no longer needs it.
 */
export class SessionSubscription extends Subscription implements SessionTaker {
  readonly stream: SessionStream;
  readonly follower: Follower<Entry, SessionTaker>;
  /** True if the client subscribed to the session by id. */
  byName = false;
  /** True if the client subscribed to the agent, and the session is not quiet. */
  byAgent = false;
  /** True while a request to subscribe is being processed. */
  isRequested = false;
  #senders: readonly Sender[] = [];
  /** The turn and the `seq` of the reply whose pieces were sent last, and the length that was sent or skipped. */
  #replyOf: string | undefined = undefined;
  #replySeq = 0;
  #offset = 0;

  constructor(owner: Owner, stream: SessionStream) {
    super(owner);
    this.stream = stream;
    this.follower = stream.follow(this);
  }

  get isSubscribed(): boolean {
    return this.byName || this.byAgent;
  }

  protected override start(): void {
    this.#forgetReply();
    // The ends of the senders' turns may not have been published yet.
    this.follower.start(Math.min(this.after, ...this.#senders.map(({ seq }) => seq - 1)));
  }

  /** Subscribes to the entries after `before`, for a client that is subscribed to the agent. */
  joinByAgent(before: number): void {
    if (this.isSubscribed) return;
    this.byAgent = true;
    this.after = before;
    this.#forgetReply();
    if (this.follower.phase !== "backfill") this.follower.startLive(before);
  }

  /** Ends the subscription by id. A session of a subscribed agent stays subscribed. */
  unsubscribe(): void {
    this.byAgent = this.isSubscribed && this.owner.agents.has(this.stream.agent ?? "");
    this.byName = false;
    this.leaveIfUnused();
    this.stream.notifyIfQuiet(this);
  }

  leaveAgent(name: string): void {
    if (this.stream.agent === name) this.byAgent = false;
    this.leaveIfUnused();
  }

  /** Adds the sender of a message. `isNew` is false if entries of the turn may already have been published. `replySeq` is the `seq` of the reply if it has just begun. */
  addSender(sender: Sender, isNew: boolean, replySeq?: number): void {
    const { stream, follower } = this;
    const { turnId, seq } = sender;
    this.#senders = [...this.#senders, sender];
    if (follower.phase === "idle") {
      if (isNew) follower.startLive(replySeq);
      else follower.start(seq - 1);
    }
    if (!sender.stream) return;
    const begun = replySeq === undefined ? stream.begun : { turnId, seq: replySeq };
    if (begun?.turnId === turnId) {
      this.#openReply(begun);
      stream.readPieces(turnId);
    }
    if (replySeq === undefined) stream.pollForReply();
    // Pieces need a cursor, and a cursor needs the session's ordinal. If the session cannot be read now, the rest of the reply precedes its end.
    if (stream.ordinal === 0)
      stream.identify().then(
        () => stream.passSoon(),
        () => {},
      );
  }

  hasSender(sender: Sender): boolean {
    return this.follower.phase !== "closed" && this.#senders.includes(sender);
  }

  removeSender(sender: Sender): void {
    this.#senders = this.#senders.filter((one) => one !== sender);
    this.leaveIfUnused();
  }

  leaveIfUnused(): void {
    if (!this.isSubscribed && !this.isRequested && this.#senders.length === 0) this.leave();
  }

  override async page(): Promise<boolean> {
    await this.stream.identify();
    return await super.page();
  }

  wants(entry: Entry): boolean {
    return this.#isForSubscriber(entry) || this.#senders.some((sender) => isForSender(sender, entry));
  }

  take(entry: Entry): void {
    const { sink, frames } = this.owner;
    const { name, turnId } = entry;
    if (name === "message.created" && entry.role === "assistant") this.#openReply(entry);
    else if (name === "message.completed") this.#pushRest(entry);
    const ended = isTurnEnd(entry) ? this.#senders.filter((sender) => sender.turnId === turnId) : [];
    if (this.#isForSubscriber(entry)) sink.push(frames.entry(entry, this.stream));
    else for (const { call } of ended) call.pushAfterAnswer(frames.entry(entry, this.stream));
    if (ended.length === 0) return;
    this.#senders = this.#senders.filter((sender) => sender.turnId !== turnId);
    this.leaveIfUnused();
  }

  /** Passes a stored entry of a sender's turn on, unless the subscription will reach it. A subscriber already has the entry, so its sender gets only the end of the turn. */
  takeStored(sender: Sender, entry: Entry): void {
    if (!this.hasSender(sender) || this.follower.isBefore(entry.seq)) return;
    if (!this.isSubscribed) this.take(entry);
    else if (isTurnEnd(entry)) {
      sender.call.pushAfterAnswer(this.owner.frames.entry(entry, this.stream));
      this.removeSender(sender);
    }
  }

  onGap(before: number): void {
    const { sink, frames } = this.owner;
    if (!this.isSubscribed || before < this.after || (this.#isHidden && before > this.after)) return;
    sink.push(frames.reset(this.cursorAt(before), this.stream.sessionId));
  }

  /** The cursor of a place in the stream. The session of an agent that the client may not use has that of an absent one. */
  cursorAt(seq: number): string {
    const { frames } = this.owner;
    return this.#isHidden ? frames.sessionCursor({ ordinal: 0 }, 0) : frames.sessionCursor(this.stream, seq);
  }

  wantsPieces(turnId: string | undefined): boolean {
    if (turnId === undefined) return this.isSubscribed || this.#senders.some(({ stream }) => stream);
    return this.isSubscribed || this.#streamerOf(turnId) !== undefined;
  }

  written(reply: WrittenReply): void {
    const { owner, stream, follower } = this;
    const isInReply = this.#isReader && follower.phase === "live" && follower.seq >= reply.seq;
    if (stream.ordinal === 0 || !(isInReply || this.#streamerOf(reply.turnId))) return;
    this.#openReply(reply);
    const offset = this.#offset;
    if (this.#replyOf !== reply.turnId || offset >= reply.length) return;
    // A piece that does not fit is skipped.
    this.#offset = reply.length;
    if (!owner.sink.isFull) owner.sink.push(owner.frames.piece(stream, reply, offset));
  }

  /** Leaves a session of a subscribed agent, which does not need a place in its stream until its next entry. */
  quiet(): void {
    if (this.byName || !this.byAgent || this.follower.phase === "backfill") return;
    this.byAgent = false;
    this.leaveIfUnused();
  }

  deleted(session: SessionRef, end: DeletedAt): void {
    const { owner } = this;
    this.leave();
    // For a subscribed agent, the subscriber pushes the deletion.
    if (owner.agents.has(session.agent)) return;
    if (this.isSubscribed || this.isRequested) {
      if (owner.mayRead(session.agent)) owner.deleted(session, end);
    }
    // The deletion also ends the turns of the session.
    else for (const { call } of this.#senders) call.pushAfterAnswer(owner.frames.deleted(end, session));
  }

  /** Pushes the rest of a reply before its end, so that a client that joins pieces has the whole reply. A subscriber that got no piece of the reply does not get the rest. */
  #pushRest({ turnId, messageId, text }: Entry & { name: "message.completed" }): void {
    const { owner, stream } = this;
    const offset = this.#offset;
    const sender = this.#streamerOf(turnId);
    const isStarted = this.#isReader && this.follower.phase === "live" && offset > 0;
    if (this.#replySeq === 0 || this.#replyOf !== turnId || offset >= text.length || !(sender || isStarted)) return;
    this.#offset = text.length;
    const reply = { turnId, messageId, seq: this.#replySeq, length: text.length, textSince: text.slice.bind(text) };
    const frame = owner.frames.piece(stream, reply, offset);
    if (sender && !this.isSubscribed) sender.call.pushAfterAnswer(frame);
    else owner.sink.push(frame);
  }

  #isForSubscriber({ seq }: Entry): boolean {
    return this.#isReader && seq > this.after;
  }

  /** A client may resume with the id of a deleted session. A later session of another agent may have the same id. */
  get #isReader(): boolean {
    return this.isSubscribed && this.owner.mayRead(this.stream.agent);
  }

  get #isHidden(): boolean {
    const { agent } = this.stream;
    return agent !== undefined && !this.owner.mayRead(agent);
  }

  #openReply({ turnId, seq }: { turnId: string; seq: number }): void {
    // An earlier reply of the turn may be read again for its sender.
    if (seq <= this.#replySeq) return;
    // The sender of the previous turn must get the rest of its reply first.
    if (turnId !== this.#replyOf && this.#streamerOf(this.#replyOf)) return;
    this.#replyOf = turnId;
    this.#replySeq = seq;
    this.#offset = 0;
  }

  /** Forgets which pieces were sent, except to a sender with `stream`, which must not get pieces twice. */
  #forgetReply(): void {
    if (!this.#streamerOf(this.#replyOf)) this.#replySeq = 0;
  }

  #streamerOf(turnId: string | undefined): Sender | undefined {
    return this.#senders.find((sender) => sender.stream && sender.turnId === turnId);
  }
}

/** Reads the end of a turn from the store for a sender, because it may have been published before the subscription followed the turn. */
export function storedEnd(subscription: SessionSubscription, sender: Sender, hasEnded: boolean): Source {
  const { stream } = subscription;
  let after = sender.seq - 1;
  return {
    async page(): Promise<boolean> {
      if (!subscription.hasSender(sender)) return false;
      await stream.identify();
      const entries = await stream.read(after, PAGE);
      for (const entry of entries) {
        if (!isForSender(sender, entry)) continue;
        subscription.takeStored(sender, entry);
        if (isTurnEnd(entry)) return false;
      }
      after = entries.at(-1)?.seq ?? after;
      if (entries.length === PAGE) return true;
      // The end was deleted.
      if (hasEnded) subscription.removeSender(sender);
      return false;
    },
  };
}

function isForSender({ turnId, stream }: Sender, entry: Entry): boolean {
  if (entry.turnId !== turnId) return false;
  return isTurnEnd(entry) || (stream && (entry.name === "message.created" || entry.name === "message.completed"));
}

function isTurnEnd({ name }: Pick<Entry, "name">): boolean {
  return name === "turn.completed" || name === "turn.failed" || name === "turn.cancelled";
}
