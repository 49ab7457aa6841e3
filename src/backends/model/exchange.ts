import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import type { Used } from "../backend.ts";
import type { Pieces } from "../outbound/alike.ts";
import type { AnswerHeaders } from "../outbound/answer-head.ts";
import type { Client } from "../outbound/client.ts";
import type { AnswerController, AnswerHandler } from "../outbound/connection.ts";
import { EventReader } from "../outbound/events.ts";
import type { OutgoingRequest } from "../outbound/request-text.ts";
import { connectionError } from "../outbound/words.ts";
import { type Deferred, deferred } from "./deferred.ts";
import { brokeOff, failureOf, jsonOf, noStream, retryAfterIn } from "./failures.ts";
import type { Ending, Plain, Wire } from "./wires/wire.ts";
import { kindOf } from "./wires/wires.ts";

/** The last event of some providers repeats the whole reply. */
const EVENT_BYTES = 16 * 1024 * 1024;
const ANSWER_BYTES = 64 * 1024 * 1024;
/** Of an answer that is an error. */
const ERROR_BYTES = 64 * 1024;
/** Events that the SDK reads in one turn of the event loop, which may take it milliseconds, and how many may wait for that. */
const SDK_EVENTS = 8;
const MOST_WAITING = 64;

/** Who hears what comes by an exchange. */
export type Hearer = {
  /** Text that went past the SDK. `block` names the part of the answer it belongs to. */
  text(text: string, block: string | undefined): void;
  /** A sign of life that is no text. */
  alive(): void;
};

/** An answer that is no stream, as far as it has been read. */
type Refusal = { status: number; retryAfterMs: number | undefined; body: JoinedBytes; type: string };

type Init = Pick<RequestInit, "headers" | "body">;

/** What the SDK is told in place of an answer that it need not read. */
const NOT_NEEDED = new Error("the answer was read without the SDK");

/**
 * One call of a model. The SDK makes the request, and it reads what is more than text: tools that are called, what the model thought. Text goes past it, and
 * where an answer is text alone the SDK never sees it: its chain of streams and validators costs 250 µs a call and 20 µs a token, and this 2.
 */
export class Exchange implements AnswerHandler, Pieces {
  readonly #client: Client;
  readonly #wire: Wire;
  readonly #now: () => number;
  readonly #hearer: Hearer;
  #controller: AnswerController | undefined;
  #reader: EventReader | undefined;
  /** Events that wait for the SDK, from `#given` on. It has to see them first, should it be needed. */
  readonly #kept: string[] = [];
  #given = 0;
  #isFeeding = false;
  #toSdk: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** What the SDK waits for. */
  #answer: Deferred<Response> | undefined;
  readonly #plainly = deferred<Ending | undefined>();
  /** The request, as soon as it is made. */
  sent: OutgoingRequest | undefined;
  #ending: Ending = {};
  /** What the provider has told so far of what was used. */
  told: Used | undefined;
  /** Why it failed. The SDK may have put it into an error of its own. */
  failure: unknown;
  /** The stream said that it is at its end. */
  hasEnded = false;
  /** Whether events came, and none in a form of this provider. */
  isStrange = false;
  #isKnown = false;
  #refused: Refusal | undefined;
  #bytes = 0;
  #isOver = false;
  #isMixed = false;
  #isHeld = false;

  constructor(client: Client, wire: Wire, now: () => number, hearer: Hearer) {
    this.#client = client;
    this.#wire = wire;
    this.#now = now;
    this.#hearer = hearer;
  }

  /** How the answer ended, when it was text alone; undefined as soon as the SDK is needed to read it. */
  plainly(): Promise<Ending | undefined> {
    return this.#plainly.promise;
  }

  /** What the SDK calls in place of `fetch`. */
  fetch(address: string, { headers, body }: Init): Promise<Response> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    // Sent already, without it.
    if (this.#answer) return this.#answer.promise;
    this.#answer = deferred();
    const { origin, pathname, search } = new URL(address);
    const all = { ...(headers as Record<string, string>), "accept-encoding": "identity" };
    this.send({ origin, path: pathname + search, headers: all, body: body as string });
    return this.#answer.promise;
  }

  /** Sends a request that the SDK has not made. Should it be needed to read the answer, it asks by `fetch` for that. */
  send(request: OutgoingRequest): void {
    this.sent = request;
    try {
      this.#client.dispatch(request, this);
    } catch (error) {
      this.#fail(connectionError("the provider", error));
    }
  }

  /** Ends it, and its connection. */
  abort(reason: unknown): void {
    this.#fail(reason);
  }

  /** Whoever reads has enough for now, or goes on. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    this.#flow();
  }

  onRequestStart(controller: AnswerController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(asError(this.failure));
  }

  onResponseStart(_controller: AnswerController, status: number, headers: AnswerHeaders): void {
    if (status < 200 || this.#isOver) return;
    const type = String(headers["content-type"] ?? "");
    if (String(headers["content-encoding"] ?? "identity") !== "identity") this.#fail(noStream("something compressed"));
    else if (status === 200 && !/json|html|xml/.test(type)) this.#begin();
    else
      this.#refused = {
        status,
        retryAfterMs: retryAfterIn(headers, this.#now()),
        body: new JoinedBytes(ERROR_BYTES),
        type,
      };
  }

  onResponseData(_controller: AnswerController, bytes: Buffer, from: number, to: number): void {
    if (this.#isOver) return;
    this.#bytes += to - from;
    if (this.#refused) {
      this.#refused.body.add(bytes, from, to);
      if (this.#bytes > ERROR_BYTES) this.#refuse(this.#refused);
    } else if (this.#bytes > ANSWER_BYTES) this.#fail(new BackendError("the provider's answer is longer than 64 MiB"));
    else this.#read(bytes, from, to);
  }

  onResponseRead(): void {
    this.#reader?.tell();
  }

  onResponseEnd(): void {
    if (this.#isOver) return;
    if (this.#refused) this.#refuse(this.#refused);
    // Not everybody ends the last event; half of one is no JSON.
    else if (this.#read(LAST_LINES, 0, LAST_LINES.length)) this.#end();
  }

  onResponseError(_controller: AnswerController, error: Error): void {
    this.#fail(this.#reader ? brokeOff(error) : connectionError("the provider", error));
  }

  /** False when that was the end of it. */
  #read(bytes: Buffer, from: number, to: number): boolean {
    try {
      this.#reader?.push(bytes, from, to);
    } catch (error) {
      this.#fail(error);
    }
    if (!this.#isOver) this.#flow();
    return !this.#isOver;
  }

  #begin(): void {
    this.#reader = new EventReader("the provider", this.#onEvent, this.#hearer.alive, EVENT_BYTES, this);
    if (this.#isMixed) this.#needSdk();
  }

  #end(): void {
    this.#isOver = true;
    if (this.#toSdk) {
      this.#feed();
      return;
    }
    if (!this.#ending.finish && !this.hasEnded) {
      this.#isOver = false;
      this.#fail(brokeOff());
      return;
    }
    this.#plainly.resolve(this.#ending);
    this.#answer?.reject(NOT_NEEDED);
  }

  readonly #onEvent = (_name: string, data: string): Plain | undefined => {
    if (this.#isOver) return undefined;
    if (data === "[DONE]") {
      this.hasEnded = true;
      this.isStrange = !this.#isKnown;
      return undefined;
    }
    const kind = kindOf(this.#wire, data);
    this.#isKnown ||= kind !== "strange";
    this.isStrange = !this.#isKnown;
    if (typeof kind !== "object") {
      if (kind !== "quiet") this.#hearer.alive();
      if (kind === "mixed") this.#isMixed = true;
      if (kind === "mixed" || kind === "sdk" || kind === "strange") this.#needSdk();
      this.#pass(data);
    } else if ("error" in kind) throw failureOf({ status: undefined, error: kind.error, retryAfterMs: undefined });
    else {
      this.told = ("ending" in kind ? kind.ending.used : kind.used) ?? this.told;
      if (this.#isMixed) {
        this.#pass(data);
        return undefined;
      }
      if (kind.text !== "") this.#hearer.text(kind.text, kind.block);
      if (!("ending" in kind)) return kind;
      this.#ending = { ...this.#ending, ...kind.ending };
      this.#pass(kind.rest ?? data);
    }
    return undefined;
  };

  /** What the data of an event say, where that is text alone. */
  readonly saidBy = (_name: string, data: string): Plain | undefined => {
    const kind = kindOf(this.#wire, data);
    return typeof kind === "object" && "text" in kind && !("ending" in kind) ? kind : undefined;
  };

  readonly onText = (text: string, block: string | undefined): void => {
    if (!this.#isOver) this.#hearer.text(text, block);
  };

  /** Gives the answer to the SDK, from its beginning but for the text. */
  #needSdk(): void {
    if (this.#toSdk) return;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#toSdk = controller;
        },
        pull: () => this.#feed(),
      },
      { highWaterMark: 1 },
    );
    this.#feed();
    this.#plainly.resolve(undefined);
    this.#answer ??= deferred();
    this.#answer.resolve(new Response(body, EVENT_STREAM));
  }

  #pass(data: string): void {
    this.#kept.push(data);
    this.#feed();
  }

  /** Gives the SDK what waits for it, when it wants more and has had none in this turn of the event loop. */
  #feed(): void {
    const sdk = this.#toSdk;
    if (!sdk || this.#isFeeding || this.failure !== undefined || (sdk.desiredSize ?? 0) <= 0) return;
    const events = this.#kept.slice(this.#given, this.#given + SDK_EVENTS);
    if (events.length === 0) {
      if (this.#isOver) sdk.close();
      return;
    }
    this.#given += events.length;
    if (2 * this.#given >= this.#kept.length) {
      this.#kept.splice(0, this.#given);
      this.#given = 0;
    }
    this.#isFeeding = true;
    setImmediate(this.#fed);
    sdk.enqueue(Buffer.from(events.map((data) => `data: ${data}\n\n`).join("")));
  }

  readonly #fed = (): void => {
    this.#isFeeding = false;
    this.#feed();
    if (!this.#isOver) this.#flow();
  };

  #flow(): void {
    const isSdkFull = this.#toSdk !== undefined && this.#kept.length - this.#given > MOST_WAITING;
    if (this.#isHeld || isSdkFull) this.#controller?.pause();
    else this.#controller?.resume();
  }

  #refuse({ status, retryAfterMs, body, type }: Refusal): void {
    const error = jsonOf(body.take().toString());
    const isError = status !== 200 || (typeof error === "object" && error !== null && "error" in error);
    this.#fail(
      isError ? failureOf({ status, error, retryAfterMs }) : noStream(type.includes("html") ? "a page" : "JSON"),
    );
  }

  #fail(error: unknown): void {
    if (this.#isOver && this.failure !== undefined) return;
    this.#isOver = true;
    this.failure ??= error;
    this.#plainly.reject(error);
    this.#answer?.reject(error);
    try {
      this.#toSdk?.error(error);
    } catch {
      // The SDK has closed it.
    }
    this.#controller?.abort(asError(error));
  }
}

const LAST_LINES = Buffer.from("\n\n");
const EVENT_STREAM = { headers: { "content-type": "text/event-stream" } };

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error("stopped"));
