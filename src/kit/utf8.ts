import { isAscii, transcode } from "node:buffer";
import { yieldToOthers } from "#kit/yield.ts";

/** The number of bytes from which it is faster to scan the bytes more than once. */
const TWO_PASSES_FROM = 4096;

/**
 * The text of bytes that are known to be UTF-8. If the text is not all ASCII, V8's own decoder blocks the process for longer than
 * decoding by way of UTF-16.
 */
export function textOfUtf8(bytes: Buffer, from = 0, to = bytes.length): string {
  if (to - from < TWO_PASSES_FROM) return bytes.toString("utf8", from, to);
  const part = bytes.subarray(from, to);
  return isAscii(part) ? part.toString("latin1") : transcode(part, "utf8", "utf16le").toString("utf16le");
}

/** A text with this number of units, or its bytes, is processed in slices, each in a separate turn of the event loop. */
export const IN_STRETCHES_FROM = 65_536;

/** The maximum number of units that are written at once, and the maximum number of bytes of one unit. */
const STRETCH = 131_072;
const MOST_BYTES = 3;

/** The bytes of a large text, written in slices with other work before and between them. */
export async function utf8InStretches(text: string): Promise<Buffer> {
  // The buffer has the maximum size, because counting the bytes first would be slow. Memory that is not written is not used.
  const room = Buffer.allocUnsafeSlow(text.length * MOST_BYTES);
  let length = 0;
  for (let from = 0; from < text.length; ) {
    await yieldToOthers();
    let to = Math.min(from + STRETCH, text.length);
    if (isFirstHalf(text.charCodeAt(to - 1)) && to < text.length) to++;
    length += room.write(text.slice(from, to), length);
    from = to;
  }
  return room.subarray(0, length);
}

function isFirstHalf(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}
