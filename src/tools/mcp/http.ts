import { setMaxListeners } from "node:events";
import { type FetchLike, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { Clock } from "#kit/clock.ts";
import { HOPS_HEADER, HOPS_KEY } from "#kit/hops.ts";
import { ANSWER_LIMITS, limitPassed } from "#kit/json-limits.ts";
import { ask, MIB, openAgent } from "#outbound/ask.ts";
import { headOf, isEventStream, requestOf, responseOf, rewritten } from "#outbound/fetch.ts";
import type { Sent } from "#outbound/server-events.ts";
import { statusWords } from "#outbound/words.ts";

const CONNECT_MS = 10_000;
/** The limit of a whole answer, or of one event of a stream. */
const ANSWER_BYTES = 16 * MIB;
/** The limit of a list of tools, most of which is left out anyway past 1 MiB. */
const LIST_BYTES = 4 * MIB;
/** The maximum number of messages in an answer that is not a stream. The SDK reads such a list at once. */
const MOST_MESSAGES = 64;

type HttpReach = {
  url: string;
  headers: Readonly<Record<string, string>>;
  clock: Clock;
  /** The time limit for reading an answer: after it no caller waits, and the client would leave it open forever. */
  longestMs: number;
  /** Reports one more event of a stream; false if it is one too many. */
  mayTell: () => boolean;
  /** Ends the server because of what it sent. */
  refuse: (what: string) => void;
};

/** The protocol over streamable HTTP. */
export function openHttpTransport({ url, headers, clock, longestMs, mayTell, refuse }: HttpReach) {
  const agent = openAgent(CONNECT_MS);
  const requireWithin = (message: string): void => {
    const passed = limitPassed(message, ANSWER_LIMITS);
    if (passed === undefined) return;
    refuse(`a message that ${passed}`);
    throw new Error("it sent a message that is too large");
  };
  const bounded = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const request = requestOf(input, init);
    const hops = hopsOfMessage(request.body);
    const most = request.body?.startsWith('{"method":"tools/list"') ? LIST_BYTES : ANSWER_BYTES;
    const sent = { ...request.headers, ...(hops !== undefined && { [HOPS_HEADER]: String(hops) }) };
    // The SDK uses one signal for all requests, and Node warns of more than ten listeners.
    if (init.signal) setMaxListeners(0, init.signal);
    const limit = isLasting(request) ? undefined : { clock, ms: longestMs };
    const answer = await ask(agent, "it", { ...request, headers: sent }, init.signal, limit);
    const { status } = answer;
    if (status >= 300 && status < 400) {
      answer.discard();
      throw new Error(`it ${statusWords(status)}`);
    }
    if (isEventStream(answer)) {
      const check = (event: Sent) => {
        if (!mayTell()) throw new Error("it sent too many messages");
        if (event !== "comment") requireWithin(event.data);
      };
      return responseOf(answer, rewritten(answer, { all: Number.POSITIVE_INFINITY, one: most }, check));
    }
    const text = await answer.text(most);
    requireWithin(text);
    if (messagesIn(text) > MOST_MESSAGES)
      throw new Error(`it answered with more than ${MOST_MESSAGES} messages at once`);
    return new Response(NO_BODY.has(status) ? null : text, headOf(answer));
  };
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: bounded as FetchLike,
    requestInit: { headers: { ...headers } },
  });
  const close = async () => {
    await transport.close();
    await agent.destroy();
  };
  return { transport, close };
}

/** True for a request whose answer has no end: a stream of notifications. */
function isLasting({ method, headers }: ReturnType<typeof requestOf>): boolean {
  return method !== "POST" || headers["mcp-method"] === "subscriptions/listen";
}

/** Statuses of answers that have no body. */
const NO_BODY = new Set([204, 205]);

/** The hops in the message of a tool call, for servers that read headers. */
function hopsOfMessage(body: string | null): unknown {
  if (!body?.includes(HOPS_KEY)) return undefined;
  const { params } = JSON.parse(body) as { params?: { _meta?: Record<string, unknown> } };
  return params?._meta?.[HOPS_KEY];
}

/** The number of messages in an answer that is a list; 1 if it is none. */
function messagesIn(answer: string): number {
  if (!answer.trimStart().startsWith("[")) return 1;
  try {
    return (JSON.parse(answer) as unknown[]).length;
  } catch {
    return 1;
  }
}
