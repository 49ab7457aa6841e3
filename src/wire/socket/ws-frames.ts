const TEXT = String.fromCharCode(0x81);
const SHORT = 125;
const LONG = 65_535;

/** A ping without a payload, as `textFrame` writes frames. */
export const PING_FRAME = String.fromCharCode(0x89, 0);
export const pongFrame = (payload: Buffer): string =>
  String.fromCharCode(0x8a, payload.length) + payload.toString("latin1");

/**
 * A server's text frame, each byte as one character of a string: frames of many answers become one string and one write, without a
 * buffer for each. To be written as latin1.
 */
export const textFrame = (text: string): string => {
  const bytes = Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString("latin1");
  const { length } = bytes;
  if (length <= SHORT) return TEXT + String.fromCharCode(length) + bytes;
  if (length <= LONG) return TEXT + String.fromCharCode(126, length >> 8, length & 255) + bytes;
  const head = Buffer.alloc(9, 127);
  head.writeBigUInt64BE(BigInt(length), 1);
  return TEXT + head.toString("latin1") + bytes;
};
