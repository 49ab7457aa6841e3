import { sendAtTickEnd } from "#kit/tick-end.ts";

/** The bytes of a WebSocket frame with a text message. A frame is created once and can be sent by many connections. */
export type Frame = Buffer;

/** Values of RFC 6455 (5.2): the first byte of an unfragmented text message, and the codes for longer lengths. A server does not mask frames. */
const TEXT = 0x81;
const LENGTH_IN_2_BYTES = 126;
const LENGTH_IN_8_BYTES = 127;

export function textFrame(text: string): Frame {
  const length = Buffer.byteLength(text);
  const headLength = length < LENGTH_IN_2_BYTES ? 2 : length < 2 ** 16 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headLength + length);
  frame[0] = TEXT;
  if (headLength === 2) frame[1] = length;
  else if (headLength === 4) {
    frame[1] = LENGTH_IN_2_BYTES;
    frame.writeUInt16BE(length, 2);
  } else {
    frame[1] = LENGTH_IN_8_BYTES;
    frame.writeBigUInt64BE(BigInt(length), 2);
  }
  frame.write(text, headLength);
  return frame;
}

let joined: { frames: readonly Frame[]; bytes: Buffer } | undefined;

/** Joins the frames of one tick for a single write. Connections that send the same frames share the result. */
export function joinFrames(frames: readonly Frame[]): Buffer {
  if (joined && isSame(joined.frames, frames)) return joined.bytes;
  joined = { frames, bytes: frames.length === 1 ? (frames[0] as Frame) : Buffer.concat(frames) };
  sendAtTickEnd(forgetJoined);
  return joined.bytes;
}

function isSame(some: readonly Frame[], others: readonly Frame[]): boolean {
  return some.length === others.length && some.every((frame, n) => frame === others[n]);
}

function forgetJoined(): void {
  joined = undefined;
}
