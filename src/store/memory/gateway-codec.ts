import type { GatewayEntry, GatewayNews } from "#store/store.ts";
import type { PackedWriter } from "./packed.ts";
import { PackedReader } from "./packed-reader.ts";

/** Kinds that come with every event; the others are few, and kept as JSON. */
const OTHER = 0;
const QUEUED = 1;
const HANDLED = 2;
const DEAD = 3;

/** Writes an entry without its `seq`, and its time first. */
export const encodeNews = (writer: PackedWriter, news: GatewayEntry): void => {
  writer.time(news.at);
  switch (news.name) {
    case "event.queued":
      writer.byte(QUEUED);
      writer.id(news.eventId, "evt_");
      writer.text(news.agentName);
      break;
    case "event.handled":
      writer.byte(HANDLED);
      writer.id(news.eventId, "evt_");
      writer.text(news.agentName);
      writer.id(news.turnId, "turn_");
      break;
    case "event.dead":
      writer.byte(DEAD);
      writer.id(news.eventId, "evt_");
      writer.text(news.agentName);
      writer.count(news.attempts);
      writer.text(news.reason);
      break;
    default: {
      const { seq: _, at: __, ...rest } = news;
      writer.byte(OTHER);
      writer.text(JSON.stringify(rest));
    }
  }
};

export const decodeNews = (bytes: Buffer, from: number, seq: number): GatewayEntry => {
  const reader = new PackedReader(bytes, from);
  const at = reader.time();
  const kind = reader.byte();
  if (kind === OTHER) return { seq, at, ...(JSON.parse(reader.text()) as GatewayNews) };
  const eventId = reader.id("evt_");
  const agentName = reader.text();
  if (kind === QUEUED) return { seq, at, name: "event.queued", eventId, agentName };
  if (kind === HANDLED) return { seq, at, name: "event.handled", eventId, agentName, turnId: reader.id("turn_") };
  const attempts = reader.count();
  return { seq, at, name: "event.dead", eventId, agentName, attempts, reason: reader.text() };
};
