import type { DeliveryNews } from "#core/recorder/delivery-feed.ts";
import type { DeletedAt, WrittenReply } from "#core/sessions/session-streams.ts";
import { errors } from "#generated/errors.ts";
import type { Pushes, PushName } from "#generated/push-types.ts";
import { sendAtTickEnd } from "#kit/tick-end.ts";
import { showToolCalls } from "#kit/tool-calls.ts";
import { showCompleted, showUsage } from "#kit/usages.ts";
import type { Entry, GatewayEntry, SessionRef } from "#store/store.ts";
import { type Frame, textFrame } from "./frame.ts";

/** The fields of a session that pushes contain. */
type PushedSession = Pick<SessionRef, "sessionId" | "ordinal">;

function textOf<Name extends PushName>(method: Name, params: Pushes[Name]): string {
  return JSON.stringify({ jsonrpc: "2.0", method, params });
}

function frameOf<Name extends PushName>(method: Name, params: Pushes[Name]): Frame {
  return textFrame(textOf(method, params));
}

/** Creates the frames of pushes. Secrets of the configuration are hidden in pushes about the gateway and deliveries. Each epoch identifies the store contents that a stream belongs to. */
export function createPushFrames(epochs: { sessions: string; gateway: string }, hideInJson: (json: string) => string) {
  const sessionCursor = ({ ordinal }: Pick<PushedSession, "ordinal">, seq: number) =>
    cursorOf("session", epochs.sessions, ordinal, seq);
  let last: { messageId: string; offset: number; length: number; frame: Frame } | undefined;
  const forgetLast = (): void => {
    last = undefined;
  };
  const gatewayCursor = (seq: number) => cursorOf("gateway", epochs.gateway, 0, seq);

  return {
    sessionCursor,
    gatewayCursor,

    entry: shared((entry: Entry, session: PushedSession): Frame => {
      const { seq } = entry;
      const { sessionId } = session;
      const cursor = sessionCursor(session, seq);
      const at = timeOf(entry.at);
      if (entry.name === "session.compacted") {
        const { before, after } = entry;
        return frameOf(entry.name, { seq, cursor, sessionId, at, before, after });
      }
      const base = { seq, cursor, sessionId, turnId: entry.turnId, at };
      switch (entry.name) {
        case "message.created": {
          const { messageId, role, text } = entry;
          return frameOf(entry.name, Object.assign(base, { messageId, role, text }));
        }
        case "message.completed": {
          const { messageId, text, toolCalls } = entry;
          return frameOf(
            entry.name,
            Object.assign(base, { messageId, text }, toolCalls && { toolCalls: showToolCalls(toolCalls) }),
          );
        }
        case "turn.queued":
          return frameOf(entry.name, base);
        case "turn.started":
          return frameOf(entry.name, Object.assign(base, { attempt: entry.attempt }));
        case "turn.failed": {
          const { name, detail } = entry.error;
          const error = { name, title: errors[name].title, ...(detail !== undefined && { detail }) };
          return frameOf(entry.name, Object.assign(base, { error, usage: showUsage(entry.usage) }));
        }
        case "turn.completed":
          return frameOf(entry.name, Object.assign(base, { reply: entry.reply, usage: showCompleted(entry.usage) }));
        case "turn.cancelled":
          return frameOf(entry.name, Object.assign(base, { reply: entry.reply, usage: showUsage(entry.usage) }));
      }
    }),

    /** The piece of a reply from `offset` to its current end. */
    piece(session: PushedSession, reply: WrittenReply, offset: number): Frame {
      const { sessionId } = session;
      const { turnId, messageId, seq, length } = reply;
      if (last?.messageId === messageId && last.offset === offset && last.length === length) return last.frame;
      const cursor = sessionCursor(session, seq);
      const text = reply.textSince(offset);
      const frame = frameOf("message.delta", { seq, cursor, sessionId, turnId, messageId, offset, text });
      last = { messageId, offset, length, frame };
      sendAtTickEnd(forgetLast);
      return frame;
    },

    deleted: shared(({ seq, at }: DeletedAt, session: PushedSession): Frame => {
      const { sessionId } = session;
      return frameOf("session.deleted", { seq, cursor: sessionCursor(session, seq), sessionId, at: timeOf(at) });
    }),

    gateway: shared(({ name, seq, at, ...news }: GatewayEntry): Frame => {
      const params = { seq, cursor: gatewayCursor(seq), at: timeOf(at), ...news };
      return textFrame(hideInJson(textOf(name, withTimes(params) as Pushes[typeof name])));
    }),

    delivery({ name, at, delivery }: DeliveryNews, seq: number): Frame {
      const cursor = gatewayCursor(seq);
      return textFrame(hideInJson(textOf(name, { seq, cursor, at: timeOf(at), delivery })));
    },

    reset: (cursor: string, sessionId: string | undefined): Frame =>
      frameOf("stream.reset", sessionId === undefined ? { cursor } : { cursor, sessionId }),
  };
}

/** Shares the last frame until the end of the tick: the followers of a stream get the same entry one after another. */
function shared<Of extends object, From = void>(make: (of: Of, from: From) => Frame): (of: Of, from: From) => Frame {
  let last: { of: Of; frame: Frame } | undefined;
  const forget = (): void => {
    last = undefined;
  };
  return (of, from) => {
    if (last?.of === of) return last.frame;
    last = { of, frame: make(of, from) };
    sendAtTickEnd(forget);
    return last.frame;
  };
}

export type PushFrames = ReturnType<typeof createPushFrames>;

/** The fields of an entry are the fields of its push, except that times are formatted. */
function withTimes(params: object): object {
  const times: Record<string, string> = {};
  for (const [name, value] of Object.entries(params))
    if (TIMES.has(name) && typeof value === "number") times[name] = timeOf(value);
  return { ...params, ...times };
}
const TIMES = new Set(["nextAt", "plannedAt", "resetsAt", "until"]);

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

/**
 * A place in a stream. `ordinal` identifies the stream of a session, and is never used again; it is 0 for the gateway's stream. `epoch` identifies the
 * store contents that the stream belongs to. A session that does not exist yet also has the ordinal 0: all its entries come after that place.
 */
export type StreamPlace = { kind: "session" | "gateway"; epoch: string; ordinal: number; seq: number };

const FORM = /^([sg])\.([\w-]{1,40})\.(\d{1,16})\.(\d{1,16})$/;

/** Encodes a place as an opaque cursor for clients. */
function cursorOf(kind: StreamPlace["kind"], epoch: string, ordinal: number, seq: number): string {
  return Buffer.from(`${kind === "session" ? "s" : "g"}.${epoch}.${ordinal}.${seq}`).toString("base64url");
}

/** Decodes a cursor. Undefined if it is not a cursor of this API. */
export function placeOfCursor(cursor: string): StreamPlace | undefined {
  const found = FORM.exec(Buffer.from(cursor, "base64url").toString("latin1"));
  if (!found) return undefined;
  const [, kind, epoch = "", ordinal, seq] = found;
  return { kind: kind === "s" ? "session" : "gateway", epoch, ordinal: Number(ordinal), seq: Number(seq) };
}

/** The stored entries of a stream: from `first` to `last`. A stream without entries has `last` below `first`. */
export type StreamRange = { epoch: string; ordinal: number; first: number; last: number };

/** True if the stream has all entries after the place. */
export function isPlaceIn({ epoch, ordinal, seq }: StreamPlace, range: StreamRange): boolean {
  const isOfStream = epoch === range.epoch && (ordinal === range.ordinal || ordinal === 0);
  return isOfStream && seq + 1 >= range.first && seq <= range.last;
}
