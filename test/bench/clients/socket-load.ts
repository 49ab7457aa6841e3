import type { Socket } from "node:net";
import { setTimeout as rest } from "node:timers/promises";
import { FrameCounter, maskedFrame } from "./frames.ts";
import { openSocket } from "./open-socket.ts";

// A WebSocket client with a constant number of calls in flight on each connection. Its frames are prepared, several are sent in one write, and one
// byte of each received frame is read. It opens its connections, reports that it is ready, and runs a load for each message with a duration.

export type SocketOptions = {
  url: string;
  token: string;
  /** The call, always the same. */
  text: string;
  connections: number;
  inFlight: number;
};
export type SocketRun = { seconds: number };
/** `micros` is the time of sending; `p50` is known for calls that were sent one at a time. */
export type SocketReport = {
  requests: number;
  micros: number;
  errors: number;
  lost: number;
  p50: number;
};

const options = JSON.parse(process.argv[2] ?? "{}") as SocketOptions;
const { url, token, text, connections, inFlight } = options;
const LAST_ANSWERS_MS = 2_000;

/** The maximum number of frames in one buffer: its beginning is any smaller number of calls. */
const frame = maskedFrame(text);
const frames = Buffer.concat(Array.from({ length: inFlight }, () => frame));
let isSending = false;
let ended = 0;
let times: number[] = [];

class Caller {
  readonly counter = new FrameCounter();
  #socket: Socket | undefined = undefined;
  #ended = 0;
  #sentAt = 0;
  sent = 0;

  async open(): Promise<void> {
    this.#socket = await openSocket(url, token, (bytes) => this.#take(bytes));
    this.#socket.on("error", () => {});
  }

  send(count: number): void {
    this.sent += count;
    this.#sentAt = performance.now();
    this.#socket?.write(frames.subarray(0, count * frame.length));
  }

  get waiting(): number {
    return this.sent - this.#ended;
  }

  #take(bytes: Buffer): void {
    this.counter.take(bytes);
    const { answers, errors } = this.counter.counts;
    const all = errors + answers;
    const more = all - this.#ended;
    if (more === 0) return;
    this.#ended = all;
    ended += more;
    if (inFlight === 1) times.push(performance.now() - this.#sentAt);
    if (isSending) this.send(more);
  }
}

const callers = Array.from({ length: connections }, () => new Caller());
for (const caller of callers) await caller.open();

function sum(pick: (caller: Caller) => number): number {
  return callers.reduce((all, caller) => all + pick(caller), 0);
}
function middleTime(): number {
  return (times.sort((a, b) => a - b)[times.length >> 1] ?? 0) * 1_000;
}

async function run({ seconds }: SocketRun): Promise<SocketReport> {
  [ended, times] = [0, []];
  const errorsBefore = sum(({ counter }) => counter.counts.errors);
  const began = performance.now();
  isSending = true;
  for (const caller of callers) caller.send(inFlight);
  await rest(seconds * 1_000);
  isSending = false;
  const [requests, micros] = [ended, (performance.now() - began) * 1_000];
  const until = performance.now() + LAST_ANSWERS_MS;
  while (sum(({ waiting }) => waiting) > 0 && performance.now() < until) await rest(10);
  const errors = sum(({ counter }) => counter.counts.errors) - errorsBefore;
  const lost = sum(({ waiting, counter }) => (counter.counts.closed ? 1 : 0) + waiting);
  return { requests, micros, errors, lost, p50: middleTime() };
}

process.on("message", async (word: SocketRun) => process.send?.(await run(word)));
process.on("disconnect", () => process.exit());
process.send?.("ready");
