import { isUtf8 } from "node:buffer";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import type { Chunk } from "../backend.ts";
import type { AnswerHeaders } from "../outbound/answer-head.ts";
import type { AnswerController, AnswerHandler } from "../outbound/connection.ts";
import { EventReader, MOST_OF_AN_EVENT } from "../outbound/events.ts";
import { connectionError, isWorthAnotherTry, statusWords } from "../outbound/words.ts";
import { readPiece } from "../turn-document.ts";
import { readEnd, readFailure, readWhole, type Want, WHO } from "./documents.ts";

const MIB = 1024 * 1024;
/** What a whole answer may have: 4 MiB of text, as JSON may write it. */
const WHOLE_BYTES = 16 * MIB;
/** The same for a stream, where each piece has an event around it. */
const STREAM_BYTES = 32 * MIB;
const FAILURE_BYTES = 64 * 1024;
/** How long an answer that is no reply, or whose reply is over, is waited for: its connection is worth that much. */
const REST_MS = 1_000;

/** Who reads an answer. */
export interface Taker {
  chunk(chunk: Chunk): void;
  /** A chunk that is text, of an event that needed not be read. */
  text(text: string): void;
  /** Once; nothing comes afterwards. */
  over(error: BackendError | undefined): void;
}

type Body = {
  most: number;
  push: (bytes: Buffer, from: number, to: number) => void;
  /** Tells what was pushed, where that is told later. */
  tell?: () => void;
  end: () => void;
};

/** One answer of an agent's service, from its head to its end. */
export class Answer implements AnswerHandler {
  readonly #want: Want;
  readonly #clock: Clock;
  readonly #taker: Taker;
  #controller: AnswerController | undefined;
  #body: Body | undefined;
  #bytes = 0;
  #isOver = false;
  #hasEnded = false;
  #stopWaiting: (() => void) | undefined;

  constructor(want: Want, clock: Clock, taker: Taker) {
    this.#want = want;
    this.#clock = clock;
    this.#taker = taker;
  }

  onRequestStart(controller: AnswerController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(LEFT);
  }

  onResponseStart(_: unknown, status: number, headers: AnswerHeaders): void {
    if (status < 200 || this.#isOver) return;
    this.#try(() => {
      this.#body = this.#bodyOf(status, headers);
    });
  }

  onResponseData(_: unknown, bytes: Buffer, from: number, to: number): void {
    this.#bytes += to - from;
    if (this.#isOver) {
      if (this.#bytes > FAILURE_BYTES) this.#controller?.abort(LEFT);
      return;
    }
    try {
      const { most, push } = this.#body as Body;
      if (this.#bytes > most) throw new BackendError(`${WHO} sent more than ${most / MIB} MiB`);
      push(bytes, from, to);
    } catch (error) {
      this.#failAs(error);
    }
  }

  onResponseRead(): void {
    this.#body?.tell?.();
  }

  onResponseEnd(): void {
    this.#stopWaiting?.();
    if (this.#isOver) return;
    this.#hasEnded = true;
    this.#try(this.#endBody);
    if (!this.#isOver) this.#finish(new BackendError(`${WHO} sent no answer`, { retryable: true }));
  }

  readonly #endBody = (): void => this.#body?.end();

  onResponseError(_: unknown, error: Error): void {
    this.#stopWaiting?.();
    this.#finish(connectionError(WHO, error));
  }

  pause(isFull: boolean): void {
    if (isFull) this.#controller?.pause();
    else this.#controller?.resume();
  }

  /** Nobody reads any more: the connection is closed. */
  leave(): void {
    this.#isOver = true;
    this.#stopWaiting?.();
    this.#controller?.abort(LEFT);
  }

  #bodyOf(status: number, headers: AnswerHeaders): Body {
    const encoding = String(headers["content-encoding"] ?? "identity");
    if (encoding !== "identity") throw new BackendError(`${WHO} encoded its answer, which it was asked not to`);
    const type = mediaTypeOf(headers["content-type"]);
    if (status < 200 || status >= 300) return this.#failure(status, type, String(headers["retry-after"] ?? ""));
    if (type === "text/event-stream" && this.#want === "reply") return this.#stream();
    return whole(WHOLE_BYTES, (text) => {
      for (const chunk of readWhole(this.#want, status, type, text)) this.#taker.chunk(chunk);
      this.#finish(undefined);
    });
  }

  #stream(): Body {
    const onEvent = (name: string, data: string) => {
      if (this.#isOver) return undefined;
      if (name === "done") {
        for (const chunk of readEnd(parsed(data))) this.#taker.chunk(chunk);
        this.#finish(undefined);
        return undefined;
      }
      const chunk = PIECES.has(name) ? readPiece(parsed(data)) : ALIVE;
      this.#taker.chunk(chunk);
      return "text" in chunk ? { text: chunk.text, block: undefined } : undefined;
    };
    const onText = (text: string) => {
      if (!this.#isOver) this.#taker.text(text);
    };
    const onComment = () => {
      if (!this.#isOver) this.#taker.chunk(ALIVE);
    };
    const reader = new EventReader(WHO, onEvent, onComment, MOST_OF_AN_EVENT, { saidBy, onText });
    const end = () => {
      reader.end();
      throw new BackendError(`${WHO} ended its stream without \`done\``, { retryable: true });
    };
    const push: Body["push"] = (bytes, from, to) => reader.push(bytes, from, to);
    return { most: STREAM_BYTES, push, tell: () => reader.tell(), end };
  }

  /** An answer that is no reply. Its head has told enough, so its body is not waited for as long as a reply is. */
  #failure(status: number, type: string, retryAfter: string): Body {
    const retryAfterMs = retryAfterOf(retryAfter, this.#clock.now());
    const fail = (text: string | undefined) => {
      const { detail, retryable = isWorthAnotherTry(status) } = readFailure(type, text);
      const words = detail === undefined ? statusWords(status) : `answered ${status}: ${detail}`;
      const isLess = this.#want === "summary" && NO_SUMMARIES.has(status);
      this.#fail(
        isLess
          ? new BackendError(`${WHO} does not write summaries (it answered ${status})`)
          : new BackendError(`${WHO} ${words}`, { retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) }),
      );
    };
    this.#stopWaiting = this.#clock.after(REST_MS, () => fail(undefined));
    const body = whole(FAILURE_BYTES, fail);
    const push: Body["push"] = (bytes, from, to) => {
      if (this.#bytes > FAILURE_BYTES) fail(undefined);
      else body.push(bytes, from, to);
    };
    return { ...body, most: Number.POSITIVE_INFINITY, push };
  }

  #try(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failAs(error);
    }
  }

  #failAs(error: unknown): void {
    this.#fail(error instanceof BackendError ? error : new BackendError(`${WHO} failed`, { cause: error }));
  }

  #fail(error: BackendError): void {
    this.#finish(error);
    this.#controller?.abort(error);
  }

  #finish(error: BackendError | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWaiting?.();
    // What comes after the reply's end is let go by, so that the connection can be used again.
    this.#bytes = 0;
    if (!error && !this.#hasEnded) this.#stopWaiting = this.#clock.after(REST_MS, () => this.#controller?.abort(LEFT));
    this.#taker.over(error);
  }
}

const LEFT = new Error("nobody waits for this answer any more");
const ALIVE: Chunk = { alive: true };
/** Events that are a piece of the reply; others are a sign of life. */
const PIECES = new Set(["", "message", "delta", "usage", "model", "error"]);

const saidBy = (_name: string, data: string) => {
  const piece = readPiece(parsed(data));
  return "text" in piece ? { text: piece.text, block: undefined } : undefined;
};

/** What a service answers that does not know the request for a summary. */
const NO_SUMMARIES = new Set([400, 404, 405, 415, 422, 501]);

const whole = (most: number, take: (text: string) => void): Body => {
  const body = new JoinedBytes(most);
  return {
    most,
    push: (bytes, from, to) => body.add(bytes, from, to),
    end: () => {
      const bytes = body.take();
      if (!isUtf8(bytes)) throw new BackendError(`${WHO} sent what is no UTF-8`);
      take(bytes.toString());
    },
  };
};

const parsed = (data: string): unknown => {
  try {
    return JSON.parse(data);
  } catch {
    throw new BackendError(`${WHO} sent an event whose data is no JSON`);
  }
};

const mediaTypeOf = (header: string | string[] | undefined): string => {
  const text = String(header ?? "");
  const end = text.indexOf(";");
  return (end < 0 ? text : text.slice(0, end)).trim().toLowerCase();
};
