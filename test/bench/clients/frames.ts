import { randomBytes } from "node:crypto";

const SHORT = 125;
const LONG = 0xffff;

/** A client's text frame, masked as the protocol requires. */
export function maskedFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  const { length } = payload;
  if (length > LONG) throw new Error("a frame of the bench has at most 65 535 bytes");
  const head = length <= SHORT ? [0x81, 0x80 | length] : [0x81, 0x80 | 126, length >> 8, length & 255];
  const mask = randomBytes(4);
  for (let at = 0; at < length; at++) payload[at] = (payload[at] as number) ^ (mask[at & 3] as number);
  return Buffer.concat([Buffer.from(head), mask, payload]);
}

/** The kinds of answers, by the only byte that is read: `{"jsonrpc":"2.0","result…` or `"error…`. */
type Counts = { answers: number; errors: number; closed: boolean };

const KIND_AT = '{"jsonrpc":"2.0","'.length;
const ERROR = 101;
const NOTHING = Buffer.alloc(0);
const TEXT = 1;
const CLOSE = 8;

/** Counts a server's frames in received pieces of any size. It parses no JSON, because then the client would be the bottleneck. */
export class FrameCounter {
  readonly counts: Counts = { answers: 0, errors: 0, closed: false };
  #rest = NOTHING;

  /** `bytes` is not stored. */
  take(bytes: Buffer): void {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    let at = 0;
    for (;;) {
      const end = frameEnd(all, at);
      if (end > all.length) break;
      this.#count(all, at);
      at = end;
    }
    this.#rest = at === all.length ? NOTHING : Buffer.from(all.subarray(at));
  }

  #count(all: Buffer, at: number): void {
    const { counts } = this;
    const opcode = (all[at] as number) & 15;
    if (opcode === CLOSE) counts.closed = true;
    if (opcode !== TEXT) return;
    const kind = all[at + ((all[at + 1] as number) === 126 ? 4 : 2) + KIND_AT];
    if (kind === ERROR) counts.errors++;
    else counts.answers++;
  }
}

/** The end of the frame at `at`; past the end of the bytes if it is not known yet. */
function frameEnd(all: Buffer, at: number): number {
  if (at + 4 > all.length) return shortEnd(all, at);
  const length = all[at + 1] as number;
  if (length > 126) throw new Error("a frame of more than 65 535 bytes, or a masked one, is none of the bench's");
  return length === 126 ? at + 4 + all.readUInt16BE(at + 2) : at + 2 + length;
}

/** A frame of fewer than four bytes may be complete. */
function shortEnd(all: Buffer, at: number): number {
  return at + 2 <= all.length && (all[at + 1] as number) <= SHORT ? at + 2 + (all[at + 1] as number) : Infinity;
}
