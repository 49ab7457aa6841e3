import { EventEmitter, once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Events } from "#observe/events.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { OVER_TLS } from "#test/harness/http2.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { createConnectionLimit } from "#wire/http/connection-limit.ts";

/** A connection from an address of this machine, which has all of 127/8. */
async function open(url: string, from = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", localAddress: from });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}
/** It stays open, and is answered. */
async function expectAnswer(socket: Socket): Promise<void> {
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [data] = await once(socket, "data");
  const [, status, requestId = ""] = /^HTTP\/1.1 (\d+) .*?x-request-id: (\S+)/is.exec(String(data)) ?? [];
  expect(status).toBe("200");
  noteChecked(requestId);
}
/** It is closed without an answer. */
async function expectEnd(socket: Socket): Promise<void> {
  await once(socket.resume(), "close");
  expect(socket.bytesRead).toBe(0);
}

describe("an address with gateway.connectionsPerAddress connections", () => {
  const config = { gateway: { connectionsPerAddress: 2 } };

  test("F11: gets no further one, whatever it sends, until it closes one; others get theirs", async () => {
    await using gateway = await startGateway({ config });
    const { url } = gateway;
    const [first, second] = [await open(url), await open(url)];
    const third = await open(url);
    await expectEnd(third);
    expect(await gateway.logged("connection.refused")).toMatchObject({ level: "warn", address: "127.0.0.1" });
    const other = await open(url, "127.0.0.2");
    await expectAnswer(other);
    await expectAnswer(second);
    first.destroy();
  });

  test("F11: shares them with its whole /64 of IPv6", () => {
    const refused: string[] = [];
    const admits = createConnectionLimit({
      limit: () => 2,
      isProxy: () => false,
      events: { connectionRefused: ({ address }: { address: string }) => refused.push(address) } as unknown as Events,
      clock: createManualClock(),
    });
    const open = (remoteAddress: string) => {
      const socket = Object.assign(new EventEmitter(), { remoteAddress }) as unknown as Socket;
      return { isIn: admits(socket), close: () => socket.emit("close") };
    };
    const first = open("2001:db8:0:1::1");
    expect([first.isIn, open("2001:db8:0:1:ffff::2").isIn, open("2001:db8:0:2::1").isIn]).toEqual([true, true, true]);
    expect(open("2001:db8:0:1::3").isIn).toBe(false);
    expect(refused).toEqual(["2001:db8:0:1::3"]);
    first.close();
    expect(open("2001:db8:0:1::4").isIn).toBe(true);
    // An IPv4 address on an IPv6 socket counts as itself.
    expect(["1", "2", "3"].map((host) => open(`::ffff:192.0.2.${host}`).isIn)).toEqual([true, true, true]);
  });

  test("has its next connection closed before a TLS handshake", async () => {
    await using gateway = await startGateway({
      config: { gateway: { ...OVER_TLS.gateway, connectionsPerAddress: 1 } },
    });
    const first = await open(gateway.url);
    const second = await open(gateway.url);
    await expectEnd(second);
    expect(first.destroyed).toBe(false);
  });

  test("is logged once in a while, and counted each time", async () => {
    await using gateway = await startGateway({ config: { gateway: { connectionsPerAddress: 1 } } });
    await open(gateway.url);
    for (let n = 0; n < 5; n++) await expectEnd(await open(gateway.url));
    await gateway.reload({ gateway: { connectionsPerAddress: 9 } });
    const metrics = await gateway.rest.send("GET", "/metrics", { key: gateway.rpcToken });
    expect(metrics.text).toMatch(/^gateway_connections_refused_total 5$/m);
    await gateway.logged("request", { operation: "ops.metrics" });
    expect(gateway.linesOf("connection.refused")).toHaveLength(1);
  });

  test("may have more after a reload, and any number if it is a configured proxy", async () => {
    await using gateway = await startGateway({ config: { gateway: { connectionsPerAddress: 1 } } });
    const { url } = gateway;
    await open(url);
    await expectEnd(await open(url));
    await gateway.reload({ gateway: { connectionsPerAddress: 2 } });
    await expectAnswer(await open(url));
    await expectEnd(await open(url));
    await gateway.reload({ gateway: { connectionsPerAddress: 2, trustedProxies: ["127.0.0.1"] } });
    for (let n = 0; n < 4; n++) await expectAnswer(await open(url));
  });
});
