import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { systemClock } from "#kit/clock.ts";
import { agreed, FLAG, frame, openFrames, PREFACE, requestBlock, reset, settings, TYPE } from "#test/harness/frames.ts";
import { createResetLimit } from "#wire/http/reset-limit.ts";
import { listenHere } from "./listener.ts";

const ENDS = FLAG.endStream | FLAG.endHeaders;
function requests(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) => frame(TYPE.headers, ENDS, n * 2 + 1, requestBlock("GET", `/${n}`)));
}

test("F36: at most four requests of a connection start in one turn of the event loop, in their order", async () => {
  const begun: { turn: number; url: string | undefined }[] = [];
  let turn = 0;
  let isCounting = true;
  const count = () => {
    turn++;
    if (isCounting) setImmediate(count);
  };
  count();
  const { port } = await listenHere(() => {}, {
    onRequest(req, res) {
      begun.push({ turn, url: req.url });
      res.end("x");
    },
  });
  await using connection = await openFrames(`http://127.0.0.1:${port}`);
  connection.write(PREFACE, settings, agreed, ...requests(100));
  await connection.until(({ type, stream }) => type === TYPE.headers && stream === 199);
  isCounting = false;
  expect(begun.map(({ url }) => url)).toEqual(Array.from({ length: 100 }, (_, n) => `/${n}`));
  const turns = new Set(begun.map((one) => one.turn));
  for (const one of turns) expect(begun.filter(({ turn }) => turn === one).length).toBeLessThanOrEqual(4);
});

test("F36: a request that is cancelled before its turn is not started", async () => {
  const begun: (string | undefined)[] = [];
  const { port } = await listenHere(() => {}, {
    onRequest(req, res) {
      begun.push(req.url);
      res.end("x");
    },
  });
  await using connection = await openFrames(`http://127.0.0.1:${port}`);
  const all = requests(100);
  connection.write(PREFACE, settings, agreed, ...all, ...all.map((_, n) => reset(n * 2 + 1)));
  connection.write(frame(TYPE.headers, ENDS, 401, requestBlock("GET", "/last")));
  await connection.until(({ type, stream }) => type === TYPE.headers && stream === 401);
  expect(begun).toEqual(["/last"]);
});

test("F36: wide heads count as cancelled requests, and normal ones do not", async () => {
  const resets = createResetLimit({ clock: systemClock, keyOf: () => "one network" });
  const { port } = await listenHere(() => {}, { resets, onRequest: (_req, res) => res.end("x") });
  const send = async (bytes: number, count: number) => {
    await using connection = await openFrames(`http://127.0.0.1:${port}`);
    const heads = Array.from({ length: count }, (_, n) =>
      frame(TYPE.headers, ENDS, n * 2 + 1, requestBlock("GET", `/${n}`, { "x-pad": `${n}`.padEnd(bytes, "x") })),
    );
    connection.write(PREFACE, settings, agreed);
    for (const head of heads) connection.write(head);
    const last = count * 2 - 1;
    return await Promise.race([
      connection.until(({ type, stream }) => type === TYPE.headers && stream === last).then(() => "answered"),
      connection.closed.then(() => "closed"),
    ]);
  };
  expect(await send(7_900, 200)).toBe("answered");
  expect(resets.size()).toBe(0);
  expect(await send(10_000, 200)).toBe("answered");
  expect(resets.size()).toBe(1);
  for (let n = 0; n < 20 && !resets.isReached({} as Socket); n++) await send(15_000, 200);
  expect(resets.isReached({} as Socket)).toBe(true);
  expect(await send(10, 1)).toBe("closed");
});

describe("F36: requests that an address cancels", () => {
  const start = () => {
    let now = 1_000;
    const clock = { now: () => now, monotonic: () => now, after: () => () => {} };
    const limit = createResetLimit({ clock, keyOf: (socket) => socket.remoteAddress ?? socket });
    const from = (remoteAddress?: string) => ({ remoteAddress }) as Socket;
    const takeBack = (times: number, socket = from("192.0.2.1")) =>
      Array.from({ length: times }, () => limit.count(socket)).filter(Boolean).length;
    return { ...limit, from, takeBack, pass: (ms: number) => (now += ms) };
  };

  test("are counted over all of its connections, and those of no other address", () => {
    const { isReached, from, takeBack } = start();
    for (let connection = 0; connection < 5; connection++) expect(takeBack(100, from("192.0.2.1"))).toBe(0);
    expect(isReached(from("192.0.2.1"))).toBe(false);
    expect(takeBack(1)).toBe(1);
    expect(isReached(from("192.0.2.1"))).toBe(true);
    expect(isReached(from("192.0.2.2"))).toBe(false);
    expect(takeBack(500, from("192.0.2.2"))).toBe(0);
  });

  test("are forgotten at fifty a second, and after a minute at the latest", () => {
    const { isReached, from, takeBack, pass } = start();
    takeBack(600);
    pass(1_999);
    expect(isReached(from("192.0.2.1"))).toBe(true);
    pass(1);
    expect(isReached(from("192.0.2.1"))).toBe(false);
    expect(takeBack(1)).toBe(1);
    takeBack(1_000_000);
    pass(50_000);
    expect(isReached(from("192.0.2.1"))).toBe(false);
  });

  test("are counted by connection for an address that many clients share", () => {
    const { from, takeBack } = start();
    for (let connection = 0; connection < 5; connection++) expect(takeBack(500, from(undefined))).toBe(0);
    expect(takeBack(501, from(undefined))).toBe(1);
  });

  test("leave no state", () => {
    const { size, from, takeBack, pass } = start();
    for (let n = 0; n < 100; n++) takeBack(1, from(`192.0.2.${n}`));
    expect(size()).toBe(100);
    pass(1_000);
    takeBack(1);
    expect(size()).toBe(1);
  });
});
