import type { ServerResponse } from "node:http";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

/** The form of events: each of them, and the text behind the last one, or behind the stop of a stream. */
export type Framing = { frame(event: unknown): string; end: string | undefined; stopped: string | undefined };

const PLAIN: Framing = {
  frame(event) {
    const { event: name, id, data } = event as SseEvent;
    return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  },
  end: undefined,
  stopped: undefined,
};

const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store, no-transform",
  "x-content-type-options": "nosniff",
  "x-accel-buffering": "no",
};
const COMMENT_EVERY_MS = 15_000;

/**
 * Sends events as a stream until they end. Events of one turn of the event loop share a write; a reader that is behind is waited for. To be
 * stopped when the caller has gone or must wait no longer; `fail` is called when the events cannot go on.
 */
export function sendEvents(
  res: ServerResponse,
  headers: Record<string, string>,
  events: AsyncIterable<unknown>,
  fail: (error: unknown) => void,
  framing = PLAIN,
): { stop(): void } {
  const source = events[Symbol.asyncIterator]();
  let isCorked = true;
  let isOver = false;
  const comments = setInterval(() => isFull(res) || res.write(":\n\n"), COMMENT_EVERY_MS).unref();
  const uncork = () => {
    if (isCorked) res.uncork();
    isCorked = false;
  };
  const end = (text: string | undefined) => {
    isOver = true;
    clearInterval(comments);
    // Node 24 ends the body before what is still corked.
    uncork();
    res.end(text);
  };
  const send = async (): Promise<void> => {
    while (!isOver) {
      const { done, value } = await source.next();
      if (isOver) return;
      if (done) return end(framing.end);
      comments.refresh();
      if (!isCorked) {
        isCorked = true;
        res.cork();
        setImmediate(uncork);
      }
      res.write(framing.frame(value));
      if (isFull(res)) await drained(res);
    }
  };
  res.writeHead(200, Object.assign({}, HEADERS, headers));
  res.cork();
  // The head leaves with the first events, or alone where there are none yet.
  setImmediate(() => {
    uncork();
    if (!isOver) res.flushHeaders();
  });
  send().catch((error: unknown) => {
    if (isOver) return;
    isOver = true;
    clearInterval(comments);
    uncork();
    fail(error);
  });
  return {
    stop() {
      // An event that is there already, as the end of its turn, is still sent.
      setImmediate(() => {
        if (isOver) return;
        end(framing.stopped);
        // Lets the maker of the events drop all that it holds for them.
        source.return?.().catch(() => {});
      });
    },
  };
}

function isFull(res: ServerResponse): boolean {
  return res.writableNeedDrain || res.socket?.writableNeedDrain === true;
}

/** Its socket may be full where the answer itself is not. */
function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => (res.writableNeedDrain ? res : res.socket)?.once("drain", resolve));
}
