import { sendJsonText, type WireCall } from "#wire/call/call.ts";
import { sendNothing } from "#wire/call/problem.ts";
import { drained, isFull, STREAM_HEADERS } from "#wire/call/sse.ts";

/** Sends an answer that has no stream. */
export function sendText(call: WireCall, status: number, text: string): void | Promise<void> {
  if (text === "") return sendNothing(call.res, status, call.requestId);
  return sendJsonText(call, status, text, status === 405 ? { allow: "POST" } : undefined);
}

/**
 * An answer that is a stream of events. Writing pauses for a slow reader. `isCall`: the stream ends with the answer of a call. If the gateway stops, the wait of the
 * call ends and the answer is still sent; any other stream ends at once.
 */
export class WebAnswer {
  readonly #call: WireCall;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #isCall: boolean;
  #isOver = false;

  constructor(call: WireCall, body: ReadableStream<Uint8Array>, isCall: boolean) {
    this.#call = call;
    this.#reader = body.getReader();
    this.#isCall = isCall;
    call.res.writeHead(200, { ...STREAM_HEADERS, "x-request-id": call.requestId });
    call.res.flushHeaders();
    this.#send().catch(() => call.res.destroy());
  }

  /** The caller has disconnected, its key is not valid any more, or the gateway stops. */
  stop(): void {
    // At a stop of the gateway the call's signal aborts next.
    queueMicrotask(() => {
      const { res, signal } = this.#call;
      if (this.#isOver || (this.#isCall && signal.aborted && !res.destroyed)) return;
      this.#isOver = true;
      this.#reader.cancel().catch(() => {});
      res.end();
    });
  }

  async #send(): Promise<void> {
    const { res } = this.#call;
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (this.#isOver) return;
      if (done) break;
      res.write(value);
      if (isFull(res)) await drained(res);
    }
    this.#isOver = true;
    res.end();
  }
}
