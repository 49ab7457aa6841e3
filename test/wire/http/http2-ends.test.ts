import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  agreed,
  FLAG,
  type Frame,
  frame,
  openFrames,
  PREFACE,
  requestBlock,
  settings,
  TYPE,
} from "#test/harness/frames.ts";
import { echo, listenHere, open } from "./listener.ts";

/** Connections are checked ten times a second, instead of once. */
const OFTEN = { stuckMs: 100 };
const ERROR = Buffer.from([0, 0, 0, 0, 0, 0, 0, 2]);

function untilClosed(socket: Socket | undefined) {
  return new Promise<void>((resolve) => (socket?.closed ? resolve() : socket?.once("close", () => resolve())));
}
let aged = 0;
beforeEach(() => {
  const now = performance.now.bind(performance);
  aged = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now() + aged);
});
afterEach(() => vi.restoreAllMocks());
/** `ms` pass at once, without any timer. */
function age(ms: number): void {
  aged += ms;
}

test.each([
  ["sends GOAWAY with an error", frame(TYPE.goaway, FLAG.none, 0, ERROR)],
  ["sends a ping of the wrong size", frame(TYPE.ping, FLAG.none, 0, Buffer.alloc(3))],
  ["sends a head that cannot be read", frame(TYPE.headers, FLAG.endStream | FLAG.endHeaders, 1, Buffer.alloc(9, 255))],
  ["sends a body without a request", frame(TYPE.data, FLAG.none, 1, Buffer.alloc(4))],
])(
  "a connection whose client %s is closed after five seconds, even if its client keeps its half open",
  async (_, bytes) => {
    const { port, accepted } = await listenHere(echo, OFTEN);
    const { socket } = await open(port, { allowHalfOpen: true });
    socket.write(Buffer.concat([PREFACE, settings]));
    await once(socket, "data");
    socket.write(bytes);
    age(5_000);
    await untilClosed(accepted[0]);
  },
);

test("an idle connection is sent one ping, and remains open", async () => {
  const { port } = await listenHere(echo, OFTEN);
  const isPing = ({ type, flags }: Frame) => type === TYPE.ping && flags === FLAG.none;
  const openIdle = async () => {
    const connection = await openFrames(`http://127.0.0.1:${port}`);
    connection.write(PREFACE, settings, agreed, frame(TYPE.ping, FLAG.none, 0, Buffer.alloc(8)));
    await connection.until(({ type, flags }) => type === TYPE.ping && flags === FLAG.ack);
    age(6_000);
    await connection.until(isPing);
    return connection;
  };
  await using first = await openIdle();
  // Connections are checked in their order: when the second is sent its ping, the first has been checked again.
  await using _second = await openIdle();
  first.write(frame(TYPE.headers, FLAG.endStream | FLAG.endHeaders, 1, requestBlock("GET", "/")));
  await first.until(({ type }) => type === TYPE.headers);
  expect(first.frames.filter(isPing)).toHaveLength(1);
});
