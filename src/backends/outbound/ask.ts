import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { Agent, type Dispatcher } from "undici";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { HEAD_BYTES, reachWithin } from "#kit/lookup.ts";
import { connectionError } from "./words.ts";

export const MIB = 1024 * 1024;

/**
 * Connections to an agent or a model, kept for the next turn. The address is the configuration's: no redirect is followed, no variable of
 * the environment sets a proxy, no cookie is kept. How long an answer may take is not decided here: every turn is watched.
 */
export const openAgent = (connectMs: number): Agent =>
  new Agent({
    connect: reachWithin(connectMs),
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

export type Answer = { status: number; headers: IncomingHttpHeaders; body: Body };

/**
 * Sends a request, and answers as soon as the head of the answer has come. It ends, and its connection with it, when the signal aborts. A
 * body that nobody reads has to be discarded: it holds its sender back. Throws a BackendError.
 */
export const ask = (
  agent: Agent,
  who: string,
  request: Dispatcher.DispatchOptions,
  signal: AbortSignal | null | undefined,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = new Body();
    const abort = () => body.fail(signal?.reason);
    const fail = (error: unknown) => {
      signal?.removeEventListener("abort", abort);
      body.fail(error);
    };
    body.onFailure = (error) => reject(connectionError(who, error));
    if (signal?.aborted) {
      abort();
      return;
    }
    signal?.addEventListener("abort", abort, { once: true });
    try {
      agent.dispatch(request, {
        onRequestStart: (controller) => body.begin(controller),
        onResponseStart: (_, status, headers) => {
          if (status >= 200) resolve({ status, headers, body });
        },
        onResponseData: (_, piece) => body.push(piece),
        onResponseEnd: () => {
          signal?.removeEventListener("abort", abort);
          body.end();
        },
        onResponseError: (_, error) => fail(error),
      });
    } catch (error) {
      fail(error);
    }
  });

/** Bytes of a body that are taken from its connection before anybody reads them. */
const READ_AHEAD = 4 * 1024;

/** The body of an answer, as it comes. */
export class Body implements AsyncIterable<Buffer> {
  #controller: Dispatcher.DispatchController | undefined;
  #pieces: Buffer[] = [];
  #bytes = 0;
  #over: { error: unknown } | "ended" | undefined;
  #wake = () => {};
  onFailure: ((error: unknown) => void) | undefined;

  begin(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(LEFT);
  }

  push(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes > READ_AHEAD) this.#controller?.pause();
    this.#wake();
  }

  end(): void {
    this.#over ??= "ended";
    this.#wake();
  }

  /** Its connection is closed, unless it has ended. What came before is still read. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#over = { error };
    this.#controller?.abort(LEFT);
    this.onFailure?.(error);
    this.#wake();
  }

  /** Nobody reads it. */
  discard(): void {
    this.fail(LEFT);
  }

  /** What has come since the last time, in one piece; undefined at the end. */
  async next(): Promise<Buffer | undefined> {
    while (this.#pieces.length === 0) {
      if (this.#over === "ended") return undefined;
      if (this.#over) throw this.#over.error;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#bytes = 0;
    this.#controller?.resume();
    return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    try {
      for (let piece = await this.next(); piece; piece = await this.next()) yield piece;
    } finally {
      this.discard();
    }
  }
}

const LEFT = new Error("nobody reads this answer any more");

/** Where a request goes, as undici wants it. */
export const targetOf = (address: string | URL): { origin: string; path: string } => {
  const { origin, pathname, search } = new URL(address);
  return { origin, path: pathname + search };
};

/** A body piece by piece, at most `most` bytes of it. Throws a BackendError. */
export async function* piecesOf(who: string, body: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  try {
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > most) throw new BackendError(`${who} sent more than ${most / MIB} MiB`);
      yield piece;
    }
  } catch (error) {
    throw connectionError(who, error);
  }
}

/** The text of a whole body. Throws a BackendError. */
export const wholeOf = async (who: string, body: AsyncIterable<Buffer>, most: number): Promise<string> => {
  const joined = new JoinedBytes(most);
  for await (const piece of piecesOf(who, body, most)) joined.add(piece);
  const all = joined.take();
  if (!isUtf8(all)) throw new BackendError(`${who} sent what is no UTF-8`);
  return all.toString();
};

/** Pieces as a stream for an SDK. Whoever cancels it discards the body they come from, even where nothing was read of it. */
export const streamOf = (pieces: AsyncIterator<Uint8Array, void>, body: Body): ReadableStream<Uint8Array> =>
  new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value as Uint8Array);
      },
      cancel: () => body.discard(),
    },
    { highWaterMark: 0 },
  );
