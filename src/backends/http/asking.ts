import type { Clock } from "#kit/clock.ts";
import type { BackendError } from "#kit/errors.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import type { Chunk, Used } from "../backend.ts";
import { type Breaker, keptBack, verdictOf } from "../breaker.ts";
import { ChunkQueue, type ChunkSource } from "../outbound/chunk-queue.ts";
import type { Client } from "../outbound/client.ts";
import { connectionError } from "../outbound/words.ts";
import { documentText, type TurnDocument } from "../turn-document.ts";
import { untold } from "../untold.ts";
import { Answer, type Taker } from "./answer.ts";
import { type Want, WHO } from "./documents.ts";
import type { createHeaders, Target } from "./request.ts";

const ACCEPT = { reply: "text/event-stream, application/json, text/plain;q=0.5", summary: "application/json" } as const;
const NOTHING: Used = { input: 0, output: 0 };

/** The service, and what keeps the gateway from it while it fails. */
export type Service = {
  client: Client;
  target: Target;
  headers: ReturnType<typeof createHeaders>;
  breaker: Breaker;
  clock: Clock;
};

export type Asked = {
  want: Want;
  id: string;
  document: () => TurnDocument | Promise<TurnDocument>;
  signal: StopSignal;
};

/** One request of an agent's service, sent when the first of its chunks is wanted. */
export class Asking implements ChunkSource, Taker {
  readonly chunks = new ChunkQueue(this);
  readonly #service: Service;
  readonly #asked: Asked;
  readonly #answer: Answer;
  #used: Used | undefined = undefined;

  constructor(service: Service, asked: Asked) {
    this.#service = service;
    this.#asked = asked;
    this.#answer = new Answer(asked.want, service.clock, this);
  }

  begin(): void {
    const { signal } = this.#asked;
    const waitMs = signal.aborted ? 0 : this.#service.breaker.wait();
    if (signal.aborted) this.chunks.fail(signal.reason);
    else if (waitMs > 0) this.chunks.fail(keptBack(WHO, waitMs));
    else {
      signal.addEventListener("abort", this.#stop, { once: true });
      this.#send();
    }
  }

  full(isFull: boolean): void {
    this.#answer.pause(isFull);
  }

  leave(): void {
    const { signal } = this.#asked;
    signal.removeEventListener("abort", this.#stop);
    // Who hears a turn leaves it where it is stopped, and is told of that first: silence is a failure all the same.
    this.#service.breaker.tell(signal.aborted ? verdictOf(signal.reason, signal) : "unknown");
    this.#answer.leave();
  }

  chunk(chunk: Chunk): void {
    if ("usage" in chunk) this.#used = chunk.usage;
    this.chunks.push(chunk);
  }

  text(text: string): void {
    this.chunks.say(text);
  }

  over(error: BackendError | undefined): void {
    this.#end(error);
  }

  readonly #stop = (): void => {
    this.#answer.leave();
    this.#end(this.#asked.signal.reason);
  };

  #end(error: unknown): void {
    const { signal } = this.#asked;
    signal.removeEventListener("abort", this.#stop);
    const retryAfterMs = (error as BackendError | undefined)?.retryAfterMs;
    this.#service.breaker.tell(error === undefined ? "answered" : verdictOf(error, signal), retryAfterMs);
    if (error !== undefined) {
      this.chunks.fail(error);
      return;
    }
    if (!this.#used) this.chunks.push(untold(WHO));
    this.chunks.push({ usage: this.#used ?? NOTHING });
    this.chunks.end();
  }

  #send(): void {
    try {
      const told = this.#asked.document();
      if (told instanceof Promise) told.then((document) => this.#post(document)).catch(this.#fail);
      else this.#post(told);
    } catch (error) {
      this.#fail(error);
    }
  }

  #post(told: TurnDocument): void {
    if (this.chunks.isOver) return;
    const { client, target, headers } = this.#service;
    const { id, want } = this.#asked;
    const body = documentText(told);
    const own = headers.of(id, ACCEPT[want], body, told.hops);
    client.dispatch(
      { origin: target.origin, path: target.path, always: headers.always(), headers: own, body },
      this.#answer,
    );
  }

  readonly #fail = (error: unknown): void => this.#end(connectionError(WHO, error));
}
