import { once } from "node:events";
import type { ServerResponse } from "node:http";

/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

const COMMENT_EVERY_MS = 15_000;
const STUCK_MS = 30_000;

const open = new Set<{ res: ServerResponse; last: number }>();
let ticker: NodeJS.Timeout | undefined;

/** One timer for all streams: an idle stream costs no timer of its own. */
const tick = () => {
  const now = performance.now();
  for (const stream of open) {
    if (stream.res.writableNeedDrain) {
      if (now - stream.last >= STUCK_MS) stream.res.destroy();
    } else if (now - stream.last >= COMMENT_EVERY_MS) {
      stream.res.write(":\n\n");
      stream.last = now;
    }
  }
};

/**
 * Sends events as a stream until they end or the reader leaves. Events of one tick share a write; a reader that is behind is waited
 * for, and cut when it takes nothing for 30 s.
 */
export const sendEvents = async (
  res: ServerResponse,
  headers: Record<string, string>,
  events: AsyncIterable<SseEvent>,
  signal: AbortSignal,
): Promise<void> => {
  res.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    ...headers,
  });
  res.flushHeaders();
  const stream = { res, last: performance.now() };
  open.add(stream);
  ticker ??= setInterval(tick, 1_000).unref();
  let corked = false;
  const uncork = () => {
    corked = false;
    res.uncork();
  };
  try {
    for await (const { event, id, data } of events) {
      if (!corked) {
        corked = true;
        res.cork();
        setImmediate(uncork);
      }
      stream.last = performance.now();
      if (!res.write(`event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`))
        await once(res, "drain", { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    open.delete(stream);
    if (open.size === 0) {
      clearInterval(ticker);
      ticker = undefined;
    }
  }
  res.end();
};
