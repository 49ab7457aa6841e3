import { expect, test } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { agreed, FLAG, frame, openFrames, PREFACE, requestBlock, settings, TYPE } from "#test/harness/frames.ts";
import { listenHere } from "#test/wire/http/listener.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";

const MOST_BYTES = 32 * 1024 ** 2;
const CONNECTIONS = 20;
const HEADS = 200;
const FRAME = 16_000;

/** The frames of a head: the first one and its continuations. */
function framesOf(stream: number, head: Buffer): Buffer[] {
  return Array.from({ length: Math.ceil(head.length / FRAME) }, (_, n) => {
    const isLast = (n + 1) * FRAME >= head.length;
    const flags = (n === 0 ? FLAG.endStream : 0) | (isLast ? FLAG.endHeaders : 0);
    return frame(n === 0 ? TYPE.headers : TYPE.continuation, flags, stream, head.subarray(n * FRAME, (n + 1) * FRAME));
  });
}

test.each([7_000, 15_000, 60_000])(
  "F36: 4 000 heads of %i bytes from one address use little memory outside of the heap",
  async (bytes) => {
    const resets = createResetLimit({ clock: systemClock, keyOf: () => "one address" });
    const { port } = await listenHere(() => {}, { resets, onRequest: (_req, res) => void res.writeHead(200).end("x") });
    const before = process.memoryUsage().external;
    let most = 0;
    for (let n = 0; n < CONNECTIONS; n++) {
      await using connection = await openFrames(`http://127.0.0.1:${port}`);
      connection.write(PREFACE, settings, agreed);
      for (let head = 0; head < HEADS && !connection.socket.closed; head++) {
        const name = `${n}-${head}`.padEnd(bytes, "abcdefg");
        const stream = head * 2 + 1;
        connection.write(...framesOf(stream, requestBlock("GET", "/", { "x-pad": name })));
        const isAnswer = (one: { type: number; stream: number }) =>
          one.stream === stream && (one.type === TYPE.headers || one.type === TYPE.reset);
        await Promise.race([connection.until(isAnswer), connection.closed]).catch(() => {});
        most = Math.max(most, process.memoryUsage().external - before);
      }
    }
    expect(most).toBeLessThan(MOST_BYTES);
  },
);
