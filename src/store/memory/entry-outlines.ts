import type { Entry } from "#store/store.ts";
import {
  decodeSize,
  HAS_CONTEXT,
  HAS_TURN,
  KINDS,
  REPLY_BEFORE,
  readDeliveryId,
  SAME_TURN,
  skipEnd,
} from "./entry-codec.ts";
import { PackedReader } from "./packed-reader.ts";

/** What an erasure has to know of an entry. No text is read for it. */
export type EntryOutline = {
  readonly seq: number;
  readonly at: number;
  readonly name: Entry["name"];
  readonly turnId: string;
  /** It is the agent's: of `message.created`, its text is still to come. */
  readonly isReply: boolean;
  /** Of the entry that a turn begins with. */
  readonly begun: { readonly deliveryId: string | undefined } | undefined;
};

const ASSISTANT = 1;

/** The outlines of the entries in bytes `from` to `to`, which begin with the entry `firstSeq`. */
export const readOutlines = (bytes: Buffer, from: number, to: number, firstSeq: number): EntryOutline[] => {
  const reader = new PackedReader(bytes, from);
  const outlines: EntryOutline[] = [];
  let turnId = "";
  for (let seq = firstSeq; reader.at < to; seq++) {
    const first = reader.byte();
    const at = reader.time();
    if ((first & SAME_TURN) === 0) turnId = reader.id("turn_");
    const name = KINDS[first & 15] as Entry["name"];
    const isReply = name === "message.created" && bytes[reader.at] === ASSISTANT;
    const isBegun = name === "turn.queued" && (first & HAS_TURN) !== 0;
    const begun = isBegun ? { deliveryId: readDeliveryId(reader, turnId) } : undefined;
    if (!isBegun) skipRest(reader, name, first);
    outlines.push({ seq, at, name, turnId, isReply, begun });
  }
  return outlines;
};

/** Goes past what comes after an entry's turn. */
const skipRest = (reader: PackedReader, name: Entry["name"], first: number): void => {
  switch (name) {
    case "message.created":
      reader.byte();
      reader.skipId();
      reader.skipText();
      if ((first & HAS_CONTEXT) !== 0) reader.skipText();
      break;
    case "message.completed":
      reader.skipId();
      reader.skipText();
      break;
    case "turn.queued":
      break;
    case "turn.started":
      reader.count();
      break;
    case "turn.failed":
      skipEnd(reader, first);
      reader.skipText();
      reader.skipText();
      break;
    case "session.compacted":
      decodeSize(reader);
      decodeSize(reader);
      break;
    default:
      skipEnd(reader, first);
      if ((first & REPLY_BEFORE) === 0) reader.skipText();
  }
};
