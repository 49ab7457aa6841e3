import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { Agent, fetch } from "undici";
import { HOPS_HEADER, HOPS_KEY } from "#core/hops.ts";
import { JoinedBytes } from "#core/joined-bytes.ts";
import { HEAD_BYTES, LINK_LOCAL, LINK_LOCAL_WORDS, reachWithin } from "#core/lookup.ts";
import { createLineCutter, LineTooLong } from "#core/programs/lines.ts";

const CONNECT_MS = 10_000;
/** A whole answer, or one line of a stream. */
const ANSWER_BYTES = 16 * 1024 ** 2;
const TOO_LONG = "its answer is longer than 16 MiB";
/** Lines of a stream that the SDK reads in one turn of the event loop, which may take it milliseconds. */
const LINES_AT_ONCE = 8;
/** One answer that is no stream may be a list of messages, which the SDK reads in one go. */
const MOST_MESSAGES = 64;
const NEWLINE = Buffer.from("\n");

type HttpReach = {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** No answer is read for longer: nobody waits for it any more, and the client would leave it open for ever. */
  longestMs: number;
  /** One more line of a stream has come; false where it is one too many. */
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
    const signal = init.method === "POST" ? within(longestMs, init.signal) : (init.signal ?? null);
    const options = { ...init, headers: [...sent], redirect: "manual", signal, dispatcher } as Parameters<
      typeof fetch
    >[1];
    const answer = (await fetch(target, options).catch(unreached)) as unknown as Response;
    if (answer.status >= 300 && answer.status < 400) {
      await answer.body?.cancel();
      throw new Error(`it answered ${answer.status}, and redirects are not followed`);
    }
    if (answer.headers.has("content-encoding")) {
      await answer.body?.cancel();
      throw new Error("it answered with an encoding that nobody asked for");
    }
    if (!answer.body) return answer;
    const { status, statusText } = answer;
    const isStream = answer.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const readable = answer.body.pipeThrough(isStream ? lines(mayTell) : whole());
    return new Response(readable, { status, statusText, headers: answer.headers });
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: bounded as FetchLike,
    requestInit: { headers: { ...headers } },
  });
  return { transport, close: () => dispatcher.destroy() };
};

/** Of a connection that stood. */
const BROKEN = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

/** undici says "fetch failed" of all of them. The code alone: a message may hold the address, which may be a secret. */
const unreached = (error: unknown): never => {
  const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
  if (typeof code !== "string") throw error;
  if (code === LINK_LOCAL) throw new Error(LINK_LOCAL_WORDS, { cause: error });
  const what = BROKEN.has(code) ? "it broke the connection off" : "it cannot be reached";
  throw new Error(`${what} (${code})`, { cause: error });
};

/** Aborts with another signal, or when the time is over; and leaves no listener behind. */
const within = (ms: number, outer: AbortSignal | null | undefined): AbortSignal => {
  const own = new AbortController();
  const stop = () => own.abort(outer?.reason);
  const end = () => {
    outer?.removeEventListener("abort", stop);
    own.abort(new Error("it did not answer in time"));
  };
  outer?.addEventListener("abort", stop, { once: true });
  setTimeout(end, ms).unref();
  return own.signal;
};

/** What a call of a tool says beside its message, for those who look at headers. */
const hopsOfMessage = (body: unknown): unknown => {
  if (typeof body !== "string" || !body.includes(HOPS_KEY)) return undefined;
  const { params } = JSON.parse(body) as { params?: { _meta?: Record<string, unknown> } };
  return params?._meta?.[HOPS_KEY];
};

type Through = TransformStream<Uint8Array, Uint8Array>;

/** Lets an answer through once it is whole, however small its pieces are. */
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

/** Lets the lines of a stream through, whole ones and a few in a turn of the event loop. */
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

/** How many messages an answer is a list of; 1 where it is none. */
const messagesIn = (answer: Buffer): number => {
  const text = answer.toString().trimStart();
  if (!text.startsWith("[")) return 1;
  try {
    return (JSON.parse(text) as unknown[]).length;
  } catch {
    return 1;
  }
};
