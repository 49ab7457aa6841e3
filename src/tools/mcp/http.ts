import { setMaxListeners } from "node:events";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { Agent, type Dispatcher } from "undici";
import { HOPS_HEADER, HOPS_KEY } from "#kit/hops.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { HEAD_BYTES, LINK_LOCAL, LINK_LOCAL_WORDS, reachWithin } from "#kit/lookup.ts";
import { discard, paced, READ_AHEAD, streamOf } from "#kit/paced.ts";
import { createLineCutter, LineTooLong } from "#kit/programs/lines.ts";

const CONNECT_MS = 10_000;
/** The limit of a whole answer, or of one line of a stream. */
const ANSWER_BYTES = 16 * 1024 ** 2;
const TOO_LONG = "its answer is longer than 16 MiB";
/** The number of lines that the SDK reads in one turn of the event loop. A turn may take milliseconds. */
const LINES_AT_ONCE = 8;
/** The number of messages in an answer that is no stream. The SDK reads such a list in one go. */
const MOST_MESSAGES = 64;
const NEWLINE = Buffer.from("\n");

type HttpReach = {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** The time limit for reading an answer: after it nobody waits any more, and the client would leave it open for ever. */
  longestMs: number;
  /** Reports one more line of a stream; false if it is one too many. */
  mayTell: () => boolean;
};

/** The protocol over streamable HTTP. Connections are kept; no redirect is followed and no proxy asked. */
export const openHttpTransport = ({ url, headers, longestMs, mayTell }: HttpReach) => {
  const dispatcher = new Agent({ connect: reachWithin(CONNECT_MS), maxHeaderSize: HEAD_BYTES, bodyTimeout: 0 });
  const bounded = async (target: string | URL, init: RequestInit = {}): Promise<Response> => {
    const sent = new Headers(init.headers);
    sent.set("accept-encoding", "identity");
    const hops = hopsOfMessage(init.body);
    if (hops !== undefined) sent.set(HOPS_HEADER, String(hops));
    const { signal, leave } = within(init.method === "POST" ? longestMs : undefined, init.signal);
    const { origin, pathname, search } = new URL(target);
    const { statusCode, headers, body } = await dispatcher
      .request({
        ...{ origin, path: `${pathname}${search}`, method: (init.method ?? "GET") as Dispatcher.HttpMethod },
        ...{ headers: Object.fromEntries(sent), body: typeof init.body === "string" ? init.body : null, signal },
        highWaterMark: READ_AHEAD,
      })
      .catch((error) => {
        leave();
        return unreached(error);
      });
    body.once("close", leave);
    const refuse = (why: string): never => {
      discard(body);
      throw new Error(why);
    };
    if (statusCode >= 300 && statusCode < 400) refuse(`it answered ${statusCode}, and redirects are not followed`);
    if ("content-encoding" in headers) refuse("it answered with an encoding that nobody asked for");
    const pairs = Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((one) => [name, one]));
    const made = { status: statusCode, headers: pairs as [string, string][] };
    if (NO_BODY.has(statusCode)) {
      await body.dump();
      return new Response(null, made);
    }
    const isStream = String(headers["content-type"]).startsWith("text/event-stream");
    const through = isStream ? lines(mayTell) : whole();
    return new Response(streamOf(paced(body), body).pipeThrough(through), made);
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: bounded as FetchLike,
    requestInit: { headers: { ...headers } },
  });
  return { transport, close: () => dispatcher.destroy() };
};

/** Statuses of answers that have no body. */
const NO_BODY = new Set([204, 205, 304]);

/** The error codes of a connection that was open before. */
const BROKEN = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/** Throws an error with the code alone: the message may hold the address, which may be a secret. */
const unreached = (error: unknown): never => {
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") throw error;
  if (code === LINK_LOCAL) throw new Error(LINK_LOCAL_WORDS, { cause: error });
  const what = BROKEN.has(code) ? "it broke the connection off" : "it cannot be reached";
  throw new Error(`${what} (${code})`, { cause: error });
};

/** A signal that aborts with `outer` or when the time is over, until `leave` is called. */
const within = (ms: number | undefined, outer: AbortSignal | null | undefined) => {
  const own = new AbortController();
  const stop = () => own.abort(outer?.reason);
  const late = () => own.abort(new Error("it did not answer in time"));
  const timer = ms === undefined ? undefined : setTimeout(late, ms).unref();
  const leave = () => {
    outer?.removeEventListener("abort", stop);
    clearTimeout(timer);
  };
  if (outer?.aborted) stop();
  // The SDK uses one signal for all requests, and Node warns of more than ten listeners.
  if (outer) setMaxListeners(0, outer);
  outer?.addEventListener("abort", stop, { once: true });
  return { signal: own.signal, leave };
};

/** The hops in the message of a tool call, for servers that look at headers. */
const hopsOfMessage = (body: unknown): unknown => {
  if (typeof body !== "string" || !body.includes(HOPS_KEY)) return undefined;
  const { params } = JSON.parse(body) as { params?: { _meta?: Record<string, unknown> } };
  return params?._meta?.[HOPS_KEY];
};

type Through = TransformStream<Uint8Array, Uint8Array>;

/** Passes an answer on as a whole, even if it comes in small pieces. */
const whole = (): Through => {
  const joined = new JoinedBytes(ANSWER_BYTES);
  return new TransformStream({
    transform(part, controller) {
      if (joined.length + part.length > ANSWER_BYTES) controller.error(new Error(TOO_LONG));
      else joined.add(bufferOf(part));
    },
    flush(controller) {
      const answer = joined.take();
      if (messagesIn(answer) > MOST_MESSAGES)
        controller.error(new Error(`it answered with more than ${MOST_MESSAGES} messages at once`));
      else controller.enqueue(answer);
    },
  });
};

/** Passes on whole lines of a stream, a few in each turn of the event loop. */
const lines = (mayTell: () => boolean): Through => {
  const cutter = createLineCutter(ANSWER_BYTES);
  let ready: Buffer[] = [];
  return new TransformStream({
    async transform(part, controller) {
      const send = () => {
        if (ready.length > 0) controller.enqueue(Buffer.concat(ready));
        ready = [];
      };
      try {
        for (const line of cutter.push(bufferOf(part))) {
          if (!mayTell()) return;
          ready.push(line, NEWLINE);
          if (ready.length < 2 * LINES_AT_ONCE) continue;
          send();
          await new Promise((resolve) => setImmediate(resolve));
        }
        send();
      } catch (error) {
        throw error instanceof LineTooLong ? new Error(TOO_LONG) : error;
      }
    },
    flush(controller) {
      const rest = cutter.rest();
      if (rest) controller.enqueue(rest);
    },
  });
};

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** The number of messages in an answer that is a list; 1 if it is none. */
const messagesIn = (answer: Buffer): number => {
  const text = answer.toString().trimStart();
  if (!text.startsWith("[")) return 1;
  try {
    return (JSON.parse(text) as unknown[]).length;
  } catch {
    return 1;
  }
};
