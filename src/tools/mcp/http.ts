import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { Agent, fetch } from "undici";
import { HOPS_HEADER, HOPS_KEY } from "#core/hops.ts";
import { HEAD_BYTES, LINK_LOCAL, LINK_LOCAL_WORDS, reachWithin } from "#core/lookup.ts";

const CONNECT_MS = 10_000;
/** A whole answer, or one event of a stream. */
const ANSWER_BYTES = 16 * 1024 ** 2;
const NEWLINE = 0x0a;

type HttpReach = {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** No answer is read for longer: nobody waits for it any more, and the client would leave it open for ever. */
  longestMs: number;
};

/** The protocol over streamable HTTP. Connections are kept; no redirect is followed and no proxy asked. */
export const openHttpTransport = ({ url, headers, longestMs }: HttpReach) => {
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
    return new Response(answer.body.pipeThrough(bound(answer)), { status, statusText, headers: answer.headers });
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

/** Lets no more through than an answer may have; of a stream, than one line of it may. */
const bound = ({ headers }: Response): TransformStream<Uint8Array, Uint8Array> => {
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
  let bytes = 0;
  return new TransformStream({
    transform(part, controller) {
      const end = isStream ? part.lastIndexOf(NEWLINE) : -1;
      bytes = end >= 0 ? part.length - end - 1 : bytes + part.length;
      if (bytes > ANSWER_BYTES) controller.error(new Error("its answer is longer than 16 MiB"));
      else controller.enqueue(part);
    },
  });
};
