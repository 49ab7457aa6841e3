import type { Clock } from "#kit/clock.ts";
import { idLike, newId } from "#kit/ids.ts";
import type { Events } from "#observe/events.ts";
import type { Delivery, Turn } from "#store/store.ts";
import { NO_STEPS } from "#wire/call/delivery.ts";
import type { Refusals } from "#wire/call/refusals.ts";
import type { RpcCaller, RpcExchange, RpcOutcome } from "#wire/rpc/rpc.ts";
import { hopsAtUpgrade } from "./handshake.ts";
import type { PendingCall } from "./session-stream.ts";
import type { PushSink } from "./streams.ts";
import type { Subscriber } from "./subscriber.ts";
import type { Subscriptions } from "./subscriptions.ts";

export type ExchangeParts = {
  subscriptions: Subscriptions;
  clock: Clock;
  events: Events;
  recordBodies(): boolean;
  refusals: Refusals;
};

/** The facts that are kept of the request to upgrade. */
export type Origin = { requestId: string; address: string; network: string; headers: string; servedAt: string };

/** The connection that the text came by. */
type Connection = PushSink & {
  readonly token: { readonly caller: RpcCaller };
  readonly origin: Origin;
  readonly signal: AbortSignal;
  readonly parts: ExchangeParts;
  subscriber: Subscriber | undefined;
};

/** One text's exchange with the dispatcher. A part that a call seldom needs is made when it asks. */
export class SocketExchange implements RpcExchange, PendingCall {
  readonly connection: Connection;
  readonly idempotencyKey = undefined;
  readonly outcome: RpcOutcome = {
    operation: "unknown",
    error: undefined,
    reason: undefined,
    turnId: undefined,
    changes: false,
  };
  readonly #text: string;
  readonly #began: number;
  #requestId: string | undefined = undefined;
  /** Pushes that wait for the answer. */
  #after: string[] | undefined = undefined;
  #isAnswered = false;

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

  pushAfterAnswer(text: string): void {
    if (this.#isAnswered) this.connection.push(text);
    else if (this.#after) this.#after.push(text);
    else this.#after = [text];
  }

  /** It was answered, or needs no answer. */
  end(): void {
    this.#isAnswered = true;
    for (const text of this.#after ?? []) this.connection.push(text);
    const { clock, events, refusals } = this.connection.parts;
    events.socketCallHandled(this, clock.monotonic() - this.#began);
    if (this.outcome.error !== undefined) refusals.noteSocketCall(this, this.connection.origin.network);
  }
}
