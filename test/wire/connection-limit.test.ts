import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { OVER_TLS } from "#test/harness/http2.ts";

const BARE = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

/** A connection from an address of this machine: all of 127/8 are. */
const open = async (url: string, from = "127.0.0.1"): Promise<Socket> => {
  const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", localAddress: from });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
};
/** Whether it is still there after another was answered, which came behind it. */
const isOpen = async (socket: Socket, url: string): Promise<boolean> => {
  const behind = await open(url, "127.0.0.3");
  behind.write(BARE);
  await once(behind, "data");
  behind.destroy();
  return !socket.readableEnded && !socket.destroyed;
};

describe("an address that holds gateway.connectionsPerAddress connections", () => {
  const config = { gateway: { connectionsPerAddress: 2 } };

  test("F11: gets no further one, whatever it says, until it gives one back; others get theirs", async () => {
    await using gateway = await startGateway({ config });
    const { url } = gateway;
    const [first, second] = [await open(url), await open(url)];
    const third = await open(url);
    await once(third.resume(), "close");
    expect(await gateway.logged("connection.refused")).toMatchObject({ level: "warn", address: "127.0.0.1" });
    const other = await open(url, "127.0.0.2");
    expect(await isOpen(other, url)).toBe(true);
    expect(await isOpen(second, url)).toBe(true);
    first.destroy();
    await expect.poll(async () => isOpen(await open(url), url)).toBe(true);
  });

  test("is closed before its TLS costs anything", async () => {
    await using gateway = await startGateway({
      config: { gateway: { ...OVER_TLS.gateway, connectionsPerAddress: 1 } },
    });
    const first = await open(gateway.url);
    const second = await open(gateway.url);
    await once(second.resume(), "close");
    expect(first.destroyed).toBe(false);
  });

  test("is told of in the log once in a while, and counted each time", async () => {
    await using gateway = await startGateway({ config: { gateway: { connectionsPerAddress: 1 } } });
    const first = await open(gateway.url);
    for (let n = 0; n < 5; n++) await once((await open(gateway.url)).resume(), "close");
    expect(gateway.linesOf("connection.refused")).toHaveLength(1);
    first.destroy();
    await once(first, "close");
    const authorization = `Bearer ${gateway.rpcToken}`;
    const read = async () => (await fetch(`${gateway.url}/metrics`, { headers: { authorization } })).text();
    await expect.poll(() => read().catch(String)).toMatch(/^gateway_connections_refused_total 5$/m);
  });

  test("may hold more when a reload says so, and any number as a proxy of ours", async () => {
    await using gateway = await startGateway({ config: { gateway: { connectionsPerAddress: 1 } } });
    const { url } = gateway;
    await open(url);
    await once((await open(url)).resume(), "close");
    await gateway.reload({ gateway: { connectionsPerAddress: 2 } });
    expect(await isOpen(await open(url), url)).toBe(true);
    await once((await open(url)).resume(), "close");
    await gateway.reload({ gateway: { connectionsPerAddress: 2, trustedProxies: ["127.0.0.1"] } });
    for (let n = 0; n < 4; n++) expect(await isOpen(await open(url), url)).toBe(true);
  });
});
