import { isUtf8 } from "node:buffer";
import type { IncomingHttpHeaders } from "node:http";
import { Agent, type Dispatcher } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import { type Connection, createConnector, parsedConnection, TURN_BYTES } from "./connection.ts";
import { createLookup } from "./lookup.ts";
import { retryAfterOf } from "./retry-after.ts";
import { connectionError } from "./words.ts";

export const MIB = 1024 * 1024;

/** The longest head of an answer. */
const HEAD_BYTES = 32 * 1024;
/** The number of interim heads (102, 103) of an answer. More of them have no end. */
const INTERIM_HEADS = 20;
/** The size and time limits of the rest of an answer that matters little. Its connection is worth that wait. */
const REST_BYTES = 64 * 1024;
const REST_MS = 1_000;

/**
 * Connections to another party, kept for the next request. The address is the configuration's: no redirect is followed, no
 * environment variable sets a proxy, no cookie is kept. `connectMs` limits the look-up of the name, the connection and TLS.
 * `ca`: the certificates to trust, if not those of the system.
 */
export function openAgent(connectMs: number, ca?: string): Agent {
  return new Agent({
    connect: createConnector({
      timeout: connectMs,
      lookup: createLookup(),
      rejectUnauthorized: true,
      minVersion: "TLSv1.2",
      ca,
    }),
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

type Request = Omit<Dispatcher.DispatchOptions, "headers"> & { headers: Record<string, string> };
/** The time limit for the whole answer. Without it the caller watches its signal. */
type Limit = { clock: Clock; ms: number };

/**
 * Sends a request, and returns as soon as the head of the answer has come. The request and its connection end when the signal
 * aborts. An answer that is not read to its end must be discarded: it holds its sender back. Throws a BackendError, also for an
 * encoded answer.
 */
export async function ask(
  agent: Agent,
  who: string,
  request: Request,
  signal: StopSignal | null | undefined,
  limit?: Limit,
): Promise<Answer> {
  const answer = new Answer(who, signal, limit);
  if (signal?.aborted) answer.fail(signal.reason);
  else
    try {
      agent.dispatch({ ...request, headers: Object.assign({}, request.headers, IDENTITY) }, answer);
    } catch (error) {
      answer.fail(error);
    }
  await answer.head();
  if ((answer.headers["content-encoding"] ?? "identity") === "identity") return answer;
  answer.discard();
  throw new BackendError(`${who} compressed its answer, although the request did not allow it`);
}

const IDENTITY = { "accept-encoding": "identity" };

/** The unread bytes of a body past which its connection is held. */
const READ_AHEAD = TURN_BYTES;

/** An answer: its head, and its body while it arrives. */
export class Answer implements Dispatcher.DispatchHandler {
  readonly who: string;
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly #signal: StopSignal | null | undefined;
  readonly #stopTimer: () => void;
  #interim = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #pieces: Buffer[] = [];
  #unread = 0;
  #read = 0;
  #connection: Connection | undefined;
  #over: { error: unknown } | "ended" | undefined;
  #wake = () => {};

  constructor(who: string, signal: StopSignal | null | undefined, limit: Limit | undefined) {
    this.who = who;
    this.#signal = signal;
    const late = () => this.fail(new BackendError(`${who} did not answer in time`, { retryable: true }));
    this.#stopTimer = limit ? limit.clock.after(limit.ms, late) : () => {};
    signal?.addEventListener("abort", this.#abort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(LEFT);
  }

  onResponseStart(_: unknown, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) {
      if (++this.#interim > INTERIM_HEADS) this.fail(new BackendError(`${this.who} sent too many interim answers`));
      return;
    }
    this.#connection = parsedConnection();
    this.status = status;
    this.headers = headers;
    this.#wake();
  }

  onResponseData(_: unknown, piece: Buffer): void {
    this.#pieces.push(piece);
    this.#unread += piece.length;
    if (this.#unread > READ_AHEAD) this.#connection?.hold();
    this.#wake();
  }

  onResponseEnd(): void {
    this.#end(this.#connection?.isBroken ? { error: new Error("its connection broke") } : "ended");
  }

  onResponseError(_: unknown, error: unknown): void {
    this.fail(error);
  }

  /** Closes its connection, unless the answer has ended. Data from before can still be read. */
  fail(error: unknown): void {
    if (this.#over) return;
    this.#end({ error });
    this.#controller?.abort(LEFT);
  }

  /** Stops reading it and closes its connection. */
  discard(): void {
    this.fail(LEFT);
  }

  /** Resolves when its head has come. */
  async head(): Promise<void> {
    while (this.status === 0) {
      if (typeof this.#over === "object") throw connectionError(this.who, this.#over.error);
      await this.#news();
    }
  }

  /**
   * The part of its body that was received since the last call, which is small; undefined at the end. Throws a BackendError, also past
   * `most` bytes.
   */
  async next(most: number): Promise<Buffer | undefined> {
    while (this.#pieces.length === 0) {
      if (this.#over === "ended") return undefined;
      if (this.#over) throw this.#brokenOff(this.#over.error);
      await this.#news();
    }
    const piece = this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#unread = 0;
    this.#connection?.release();
    this.#read += piece.length;
    if (this.#read > most) throw new BackendError(`${this.who} sent more than ${most / MIB} MiB`);
    return piece;
  }

  /** The text of its whole body. Throws a BackendError. */
  async text(most: number): Promise<string> {
    const joined = new JoinedBytes(most);
    try {
      for (let piece = await this.next(most); piece; piece = await this.next(most)) joined.add(piece);
    } finally {
      this.discard();
    }
    const all = joined.take();
    if (!isUtf8(all)) throw new BackendError(`${this.who} sent text that is not UTF-8`);
    return all.toString();
  }

  /** The rest of its body, if it is short and arrives soon. */
  async rest(clock: Clock): Promise<string | undefined> {
    const stopWaiting = clock.after(REST_MS, () => this.discard());
    const text = await this.text(REST_BYTES).catch(() => undefined);
    stopWaiting();
    return text;
  }

  /** The wait before another request that its head asks for, as an option of an error. */
  again({ now }: Pick<Clock, "now">): { retryAfterMs?: number } {
    const retryAfterMs = retryAfterOf(this.headers, now());
    return retryAfterMs === undefined ? {} : { retryAfterMs };
  }

  readonly #abort = (): void => this.fail(this.#signal?.reason);

  #end(over: { error: unknown } | "ended"): void {
    this.#over ??= over;
    this.#connection?.release();
    this.#connection = undefined;
    this.#stopTimer();
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#wake();
  }

  #news(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }

  #brokenOff(cause: unknown): BackendError {
    if (cause instanceof BackendError) return cause;
    return new BackendError(`${this.who} ended its answer early`, { retryable: true, cause });
  }
}

const LEFT = new Error("nobody reads this answer any more");

/** The target of a request, in the form that undici expects. */
export function targetOf(address: string | URL): { origin: string; path: string } {
  const { origin, pathname, search } = new URL(address);
  return { origin, path: pathname + search };
}

/** The credentials in an address. */
export function credentialsOf(address: string): Record<string, string> {
  const { username, password } = new URL(address);
  if (username === "" && password === "") return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}
