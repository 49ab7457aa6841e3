import type { Clock } from "#kit/clock.ts";
import { idLike, newId } from "#kit/ids.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery, Turn } from "#store/store.ts";
import { NO_STEPS } from "#wire/call/delivery.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import type { RpcCaller, RpcExchange } from "#wire/rpc/rpc.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { PendingCall } from "./turn-follower.ts";
import type { Connection } from "./ws-connection.ts";
import { hopsAtUpgrade } from "./ws-handshake.ts";

export type ExchangeParts = {
  subscriptions: Subscriptions;
  clock: Clock;
  events: Events;
  recordBodies(): boolean;
  refusals: Refusals;
  /** The last of its calls was answered. */
  onIdle(connection: Connection): void;
};

/** One text's exchange with the dispatcher. What a call seldom needs is made when it asks. */
export class SocketExchange implements RpcExchange, PendingCall {
  readonly connection: Connection;
  readonly idempotencyKey = undefined;
  operation = "unknown";
  error: string | undefined = undefined;
  reason: string | undefined = undefined;
  turnId: string | undefined = undefined;
  changes = false;
  readonly #text: string;
  readonly #began: number;
  #requestId: string | undefined = undefined;
  /** Pushes that wait for the answer; undefined once that was sent. */
  #after: string | undefined = "";

  constructor(connection: Connection, text: string) {
    this.connection = connection;
    this.#text = text;
    this.#began = connection.parts.clock.monotonic();
  }

  get caller(): RpcCaller {
    return this.connection.token.caller;
  }

  get callerName(): string {
    return this.caller.name;
  }

  get servedAt(): string {
    return this.connection.origin.servedAt;
  }

  get hops(): number {
    return hopsAtUpgrade(this.connection.origin.headers);
  }

  get requestId(): string {
    this.#requestId ??= newId("req", this.connection.parts.clock.now());
    return this.#requestId;
  }

  get signal(): AbortSignal {
    return this.connection.signal;
  }

  get follow(): NonNullable<RpcExchange["follow"]> {
    return (turn: Turn, options) => this.connection.parts.subscriptions.follow(this.connection, this, turn, options);
  }

  delivery(operation: string, entry: string | undefined): Delivery {
    const { clock, recordBodies } = this.connection.parts;
    const now = clock.now();
    const body = Buffer.from(entry ?? this.#text);
    return {
      deliveryId: entry === undefined ? idLike("dlv", this.requestId, now) : newId("dlv", now),
      at: now,
      surface: "rpc",
      operation,
      method: "WS",
      path: "/rpc/ws",
      address: this.connection.origin.address,
      requestId: this.requestId,
      caller: this.caller.name,
      headers: this.connection.origin.headers,
      body: recordBodies() ? body : undefined,
      bytes: body.length,
      answer: "accepted",
      status: undefined,
      mapping: undefined,
      replayOf: undefined,
      senderId: undefined,
      steps: NO_STEPS,
    };
  }

  pushAfterAnswer(frame: string): void {
    if (this.#after === undefined) this.connection.push(frame);
    else this.#after += frame;
  }

  /** It was answered, or needs no answer. */
  end(): void {
    const after = this.#after as string;
    this.#after = undefined;
    if (after !== "") this.connection.push(after);
    const { clock, events, refusals } = this.connection.parts;
    const ms = clock.monotonic() - this.#began;
    events.socketCallHandled(this, ms);
    if (this.error !== undefined) refusals.noteSocketCall(this, this.connection.origin.network);
  }
}
