/** One server-sent event. `data` is sent as JSON, which holds no line break. */
export type SseEvent = { event: string; id: string; data: unknown };

/** How events are written: each of them, and what stands behind the last one, or where they are stopped before it. */
export type Framing = { frame(event: unknown): string; end: string | undefined; stopped: string | undefined };

type Delta = { turn_id: string; message_id: string; seq: number; offset: number; text: string };
export type DeltaEvent = { id: string; data: Delta };

export const DELTA = "message.delta";

const SHORT = 64;

/** Short, ASCII, and with nothing that JSON escapes. */
export const isPlainText = (text: string): boolean => {
  if (text.length > SHORT) return false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit > 0x7e) return false;
  }
  return true;
};

/** What stands before the offset in all events with pieces of one reply. It names ids of ours, in which nothing is escaped. */
export const startOf = ({ turn_id, message_id, seq }: Delta): string =>
  inOnePlace(`\ndata: {"turn_id":"${turn_id}","message_id":"${message_id}","seq":${seq},"offset":`);

/** The same text, which V8 would otherwise put together from its parts each time it is written. */
const inOnePlace = (text: string): string => Buffer.from(text, "latin1").toString("latin1");

export const PLAIN: Framing = {
  frame(event) {
    const { event: name, id, data } = event as SseEvent;
    return `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
  },
  end: undefined,
  stopped: undefined,
};
