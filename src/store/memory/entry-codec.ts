import type { ErrorName } from "#kit/errors.ts";
import { moreOf, type Usage } from "#kit/usages.ts";
import type { Entry, Role, SessionSize, Surface } from "#store/store.ts";
import { PackedWriter } from "./packed.ts";
import { PackedReader } from "./packed-reader.ts";
import type { NewEntry } from "./rows.ts";

/** What the log keeps of a turn at its first `turn.queued` entry, beside the entry itself. */
export type QueuedTurn = {
  surface: Surface;
  caller: string;
  model: string | undefined;
  skillIds: readonly string[];
  messageId: string;
  deliveryId: string | undefined;
};

/** An entry as the log holds it. */
export type Logged = { entry: Entry; queued: QueuedTurn | undefined };

export const KINDS = [
  "message.created",
  "message.completed",
  "turn.queued",
  "turn.started",
  "turn.completed",
  "turn.failed",
  "turn.cancelled",
  "session.compacted",
] as const satisfies readonly Entry["name"][];
const ROLES = ["user", "assistant", "system", "tool"] as const satisfies readonly Role[];
const SURFACES = ["rest", "rpc", "hooks", "heartbeat"] as const satisfies readonly Surface[];

/** Bits beside the kind in an entry's first byte. */
const OUTSIDE = 16;
/** Of a turn's end: it used more than tokens in and out; and another model answered than was asked for. */
const HAS_MORE = 16;
const HAS_MODEL = 32;
/** Of `turn.queued`: it tells of the turn. */
export const HAS_TURN = 32;
/** Of `message.created`: something came beside the text. */
export const HAS_CONTEXT = 32;
/** The reply is the text of the entry right before, in the same chunk. */
export const REPLY_BEFORE = 64;
/** The turn is that of the entry right before, in the same chunk. */
export const SAME_TURN = 128;

const writer = new PackedWriter();

/**
 * Writes an entry; the bytes are the returned writer's until the next call. What the entry before it in the same chunk has is not
 * written again: its turn (`sameTurn`), and the reply's text (`replyBefore`). `textBytes`: how long a message's text is in UTF-8.
 */
export const encodeEntry = (
  entry: NewEntry,
  queued: QueuedTurn | undefined,
  sameTurn: boolean,
  replyBefore: boolean,
  textBytes?: number,
): PackedWriter => {
  writer.begin();
  const isOutside = entry.name === "message.created" && entry.outside;
  const before = (replyBefore ? REPLY_BEFORE : 0) | (sameTurn ? SAME_TURN : 0);
  const hasContext = entry.name === "message.created" && entry.context !== undefined;
  const more = queued || hasContext ? HAS_TURN : 0;
  writer.byte(KINDS.indexOf(entry.name) | (isOutside ? OUTSIDE : 0) | more | endFlags(entry) | before);
  writer.time(entry.at);
  if (!sameTurn) writer.id(entry.turnId, "turn_");
  switch (entry.name) {
    case "message.created":
      writer.byte(ROLES.indexOf(entry.role));
      writer.idLike(entry.messageId, "msg_", entry.turnId);
      writer.text(entry.text, textBytes);
      if (entry.context !== undefined) writer.text(entry.context);
      break;
    case "message.completed":
      writer.id(entry.messageId, "msg_");
      writer.text(entry.text, textBytes);
      break;
    case "turn.queued":
      if (queued) encodeQueued(queued, entry.turnId);
      break;
    case "turn.started":
      writer.count(entry.attempt);
      break;
    case "turn.failed":
      encodeEnd(entry);
      writer.text(entry.error.name);
      writer.text(entry.error.detail === undefined ? "" : `=${entry.error.detail}`);
      break;
    case "session.compacted":
      encodeSize(entry.before);
      encodeSize(entry.after);
      break;
    default:
      encodeEnd(entry);
      if (!replyBefore) writer.text(entry.reply);
  }
  return writer;
};

const encodeQueued = (queued: QueuedTurn, turnId: string): void => {
  const { surface, caller, model, skillIds, messageId, deliveryId } = queued;
  writer.byte(SURFACES.indexOf(surface));
  writer.text(caller);
  writer.text(model ?? "");
  writer.count(skillIds.length);
  for (const skillId of skillIds) writer.text(skillId);
  writer.idLike(messageId, "msg_", turnId);
  writer.idLike(deliveryId ?? "", "dlv_", turnId);
};

type End = { usage: Usage; model?: string | undefined };

const endFlags = (entry: object & Partial<End>): number =>
  (entry.usage?.more ? HAS_MORE : 0) | (entry.model === undefined ? 0 : HAS_MODEL);

const encodeEnd = ({ usage: { input, output, more }, model }: End): void => {
  writer.count(input);
  writer.count(output);
  if (more) {
    writer.count(more.cached);
    writer.count(more.reasoning);
    writer.count(more.cost);
  }
  if (model !== undefined) writer.text(model);
};

const encodeSize = ({ messages, tokens }: SessionSize): void => {
  writer.count(messages);
  writer.count(tokens);
};

/** The entries in bytes `from` to `to`, which begin with the entry `firstSeq`; none behind `lastSeq` is read. */
export const decodeEntries = (
  bytes: Buffer,
  from: number,
  to: number,
  firstSeq: number,
  lastSeq = Infinity,
): Logged[] => {
  const reader = new PackedReader(bytes, from);
  const logged: Logged[] = [];
  let before: Entry | undefined;
  for (let seq = firstSeq; reader.at < to && seq <= lastSeq; seq++) {
    const one = decodeEntry(reader, seq, before);
    before = one.entry;
    logged.push(one);
  }
  return logged;
};

const decodeEntry = (reader: PackedReader, seq: number, before: Entry | undefined): Logged => {
  const first = reader.byte();
  const name = KINDS[first & 15] as Entry["name"];
  const at = reader.time();
  const base = { seq, at, turnId: before && (first & SAME_TURN) !== 0 ? before.turnId : reader.id("turn_") };
  const textBefore = before?.name === "message.completed" ? before.text : "";
  const reply = () => ((first & REPLY_BEFORE) === 0 ? reader.text() : textBefore);
  switch (name) {
    case "message.created": {
      const role = ROLES[reader.byte()] as Role;
      const messageId = reader.idLike("msg_", base.turnId);
      const text = reader.text();
      const context = (first & HAS_CONTEXT) === 0 ? undefined : reader.text();
      const entry: Entry = { ...base, name, messageId, role, text, outside: (first & OUTSIDE) !== 0, context };
      return { entry, queued: undefined };
    }
    case "message.completed":
      return { entry: { ...base, name, messageId: reader.id("msg_"), text: reader.text() }, queued: undefined };
    case "turn.queued":
      return {
        entry: { ...base, name },
        queued: (first & HAS_TURN) === 0 ? undefined : decodeQueued(reader, base.turnId),
      };
    case "turn.started":
      return { entry: { ...base, name, attempt: reader.count() }, queued: undefined };
    case "turn.failed": {
      const end = decodeEnd(reader, first);
      const error = { name: reader.text() as ErrorName, detail: decodeDetail(reader.text()) };
      return { entry: { ...base, name, ...end, error }, queued: undefined };
    }
    case "session.compacted":
      return { entry: { ...base, name, before: decodeSize(reader), after: decodeSize(reader) }, queued: undefined };
    default: {
      const end = decodeEnd(reader, first);
      return { entry: { ...base, name, ...end, reply: reply() }, queued: undefined };
    }
  }
};

const decodeQueued = (reader: PackedReader, turnId: string): QueuedTurn => {
  const surface = SURFACES[reader.byte()] as Surface;
  const caller = reader.text();
  const model = reader.text() || undefined;
  const skillIds = Array.from({ length: reader.count() }, () => reader.text());
  const messageId = reader.idLike("msg_", turnId);
  const deliveryId = reader.idLike("dlv_", turnId) || undefined;
  return { surface, caller, model, skillIds, messageId, deliveryId };
};

/** Of what `decodeQueued` reads, the delivery alone. */
export const readDeliveryId = (reader: PackedReader, turnId: string): string | undefined => {
  reader.byte();
  reader.skipText();
  reader.skipText();
  for (let left = reader.count(); left > 0; left--) reader.skipText();
  reader.skipId();
  return reader.idLike("dlv_", turnId) || undefined;
};

export const decodeSize = (reader: PackedReader): SessionSize => ({ messages: reader.count(), tokens: reader.count() });

const decodeEnd = (reader: PackedReader, first: number): End => {
  const usage: Usage = { input: reader.count(), output: reader.count() };
  if ((first & HAS_MORE) !== 0) usage.more = moreOf(reader.count(), reader.count(), reader.count());
  return { usage, model: (first & HAS_MODEL) === 0 ? undefined : reader.text() };
};

/** Goes past what `decodeEnd` reads. */
export const skipEnd = (reader: PackedReader, first: number): void => {
  for (let left = (first & HAS_MORE) === 0 ? 2 : 5; left > 0; left--) reader.count();
  if ((first & HAS_MODEL) !== 0) reader.skipText();
};

const decodeDetail = (text: string): string | undefined => (text === "" ? undefined : text.slice(1));
