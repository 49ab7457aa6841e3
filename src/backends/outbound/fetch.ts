import { isUtf8 } from "node:buffer";
import type { Agent, Dispatcher } from "undici";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { discard, paced, READ_AHEAD, streamOf } from "#kit/paced.ts";
import { retryAfterOf } from "#kit/retry-after.ts";
import { EventReader } from "./events.ts";
import { connectionError, isWorthAnotherTry, statusWords } from "./words.ts";

const MIB = 1024 * 1024;
const WHOLE_BYTES = 16 * MIB;
const STREAM_BYTES = 32 * MIB;
/** Events that the SDK reads in one turn of the event loop, which may take it milliseconds. */
const EVENTS_AT_ONCE = 16;

export type FetchSettings = {
  /** As errors call the other side. */
  who: string;
  headers: Readonly<Record<string, string>>;
  clock: Clock;
  /** Where requests may go: an address comes from the other side. */
  origin: string;
};

/**
 * `fetch` for an SDK that speaks to an agent: no redirects, nothing encoded, limits on all that is read. An answer with an error's status, one that
 * is no UTF-8 or no JSON is a BackendError, and nobody sees its body.
 */
export const createFetch = (agent: Agent, settings: FetchSettings): typeof fetch => {
  const { who, headers, clock, origin } = settings;
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== origin) throw new BackendError(`${who} names an address at another host, where nothing is sent`);
    const own = Object.fromEntries(new Headers(init.headers));
    let answer: Dispatcher.ResponseData;
    try {
      answer = await agent.request({
        ...{ origin, path: `${url.pathname}${url.search}`, method: (init.method ?? "GET") as Dispatcher.HttpMethod },
        headers: { "user-agent": "agent-gateway", ...headers, ...own, "accept-encoding": "identity" },
        body: typeof init.body === "string" ? init.body : null,
        ...{ signal: init.signal ?? null, highWaterMark: READ_AHEAD },
      });
    } catch (error) {
      throw connectionError(who, error);
    }
    const { statusCode: status, headers: head, body } = answer;
    const refuse = (error: BackendError): never => {
      discard(body);
      throw error;
    };
    if (status < 200 || status >= 300) {
      const retryAfterMs = retryAfterOf(String(head["retry-after"] ?? ""), clock.now());
      const retryable = isWorthAnotherTry(status);
      refuse(
        new BackendError(`${who} ${statusWords(status)}`, {
          retryable,
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        }),
      );
    }
    if ((head["content-encoding"] ?? "identity") !== "identity")
      refuse(new BackendError(`${who} encoded its answer, which it was asked not to`));
    const type = String(head["content-type"] ?? "");
    const made = { status, headers: { "content-type": type } };
    if (!/^text\/event-stream\b/i.test(type)) return new Response(await wholeOf(who, body), made);
    return new Response(streamOf(eventsOf(who, body), body), made);
  };
};

const wholeOf = async (who: string, body: AsyncIterable<Buffer>): Promise<string> => {
  const joined = new JoinedBytes(WHOLE_BYTES);
  for await (const piece of read(who, body)) {
    if (joined.length + piece.length > WHOLE_BYTES) throw new BackendError(`${who} sent more than 16 MiB`);
    joined.add(piece);
  }
  const all = joined.take();
  if (!isUtf8(all)) throw new BackendError(`${who} sent what is no UTF-8`);
  const text = all.toString();
  checkJson(who, text);
  return text;
};

/** The events of a body, each written anew: what is read behind it sees whole events of JSON only. */
async function* eventsOf(who: string, body: AsyncIterable<Buffer>): AsyncGenerator<Uint8Array, void> {
  const ready: string[] = [];
  let bytes = 0;
  const reader = new EventReader(
    who,
    (name, data) => {
      checkJson(who, data);
      ready.push(`${name === "" ? "" : `event: ${name}\n`}data: ${data.replaceAll("\n", "\ndata: ")}\n\n`);
      return undefined;
    },
    () => ready.push(":\n\n"),
  );
  for await (const piece of read(who, body)) {
    bytes += piece.length;
    if (bytes > STREAM_BYTES) throw new BackendError(`${who} sent more than 32 MiB`);
    reader.push(piece);
    reader.tell();
    while (ready.length > 0) {
      yield Buffer.from(ready.splice(0, EVENTS_AT_ONCE).join(""));
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  reader.end();
}

async function* read(who: string, body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  try {
    yield* paced(body);
  } catch (error) {
    throw connectionError(who, error);
  }
}

const checkJson = (who: string, text: string): void => {
  try {
    JSON.parse(text);
  } catch {
    throw new BackendError(`${who} answered with something that is no JSON`);
  }
};
