import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { yieldToOthers } from "#kit/yield.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { watchAccepted, watchHeld } from "#test/harness/held.ts";
import { CERTIFICATE } from "#test/harness/http2.ts";
import { root } from "#test/harness/process.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { listenHere } from "./listener.ts";

const MIB = 2 ** 20;
const READERS = 50;
/** More than the network buffers of both sides hold. */
const FLOOD_BYTES = 16 * MIB;
const stuckMs = 1_000;

function untilClosed(sockets: readonly Socket[]) {
  return Promise.all(sockets.map((socket) => socket.closed || once(socket, "close")));
}

describe.each([
  ["in clear text", undefined],
  ["over TLS", { cert: CERTIFICATE, key: readFileSync(join(root, "test/config/tls/key.pem"), "utf8") }],
])("over HTTP/1.1 %s", (_, tls) => {
  const answer = Buffer.alloc(256 * 1024, "x");
  const serve = (onRequest: (res: ServerResponse) => void) =>
    listenHere(() => {}, { tls, stuckMs, onRequest: (_, res) => onRequest(res), admits: () => true });
  const open = async (port: number): Promise<Socket> => {
    const socket = tls ? connectTls({ port, ca: CERTIFICATE, servername: "localhost" }) : connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    await once(
      socket.on("error", () => {}),
      tls ? "secureConnect" : "connect",
    );
    return socket;
  };
  const GET = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

  test(`F10: ${READERS} that request much and read nothing are buffered up to 1 MiB each, and closed; others are answered`, async () => {
    let asked = 0;
    const { port } = await serve((res) => {
      asked++;
      res.end(answer);
    });
    const accepted = watchAccepted();
    const requests = GET.repeat(FLOOD_BYTES / answer.length);
    const slow = await Promise.all(Array.from({ length: READERS }, () => open(port)));
    for (const socket of slow) socket.pause().write(requests);
    const look = watchHeld(accepted);
    await expect.poll(() => (tls ? accepted.length : look().held)).toBe(READERS);
    const asIs = [...accepted];
    const other = await open(port);
    other.write(GET);
    await once(other, "data");
    expect(look().most).toBeLessThan(MIB);
    await untilClosed(asIs);
    // The gateway produced only as much as it could send, and a little more.
    expect(asked).toBeLessThan((READERS * FLOOD_BYTES) / answer.length / 2);
    expect(other.destroyed).toBe(false);
  });

  test("a reader of almost nothing is closed too, and a slow one is not", async () => {
    const { port } = await serve((res) => res.end(Buffer.alloc(FLOOD_BYTES, "x")));
    const accepted = watchAccepted();
    const sip = async (bytes: number, everyMs: number): Promise<Socket> => {
      const socket = await open(port);
      socket.pause().write(GET);
      const sips = setInterval(() => socket.read(Math.min(bytes, socket.readableLength)), everyMs);
      onTestFinished(() => clearInterval(sips));
      return socket;
    };
    await sip(10, 100);
    await sip(128 * 1024, 20);
    const [nothing, slowly] = accepted as [Socket, Socket];
    await untilClosed([nothing]);
    await sleep(stuckMs);
    expect(slowly.destroyed).toBe(false);
  });
});

test(`F10: ${READERS} readers of a stream that stop are buffered up to 1 MiB each, and closed; the turn and others continue`, async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway({
    makeBackend: () => puppet.backend,
    // The two readers are in this process, so on a busy machine they are late, too.
    socketTimes: { stuckMs: 4 * stuckMs },
  });
  const { events } = await gateway.rest.stream("chat.send", { body: { message: "hi" } });
  const turn = await puppet.next();
  await events.return(undefined);
  const { turnId } = turn.turn;
  const path = { turn_id: turnId };
  const others = await Promise.all(Array.from({ length: 2 }, () => gateway.rest.stream("turns.events", { path })));
  const told = others.map(({ all }) => all());

  const accepted = watchAccepted();
  const place = { method: "GET", path: `/api/v1/turns/${turnId}/events` };
  for (let n = 0; n < READERS; n++) {
    const reader = await openConnection(gateway.url);
    onTestFinished(() => reader[Symbol.asyncDispose]());
    reader.write(requestText(place, { authorization: `Bearer ${gateway.key}` }));
    await reader.head(place);
    reader.socket.pause();
  }
  const slow = [...accepted];
  // Six times as long on the network as in the reply, which may have 4 MiB.
  const piece = "\u0001".repeat(8 * 1024);
  const look = watchHeld(slow);
  for (let sent = 0; sent < FLOOD_BYTES / 2; sent += piece.length * 6) {
    turn.say(piece);
    await yieldToOthers();
    await yieldToOthers();
    look();
  }
  expect(look().held).toBe(READERS);
  expect(look().most).toBeLessThan(MIB);
  await untilClosed(slow);
  turn.end();
  for (const all of told) expect((await all).at(-1)).toMatchObject({ event: "turn.completed" });
});
