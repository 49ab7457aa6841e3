import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createSecureContext, TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { Servers } from "#store/postgres/connect.ts";
import { root } from "#test/harness/process.ts";

function tlsFile(name: string): Buffer {
  return readFileSync(join(root, "test/config/tls", name));
}
const SECURE = createSecureContext({ cert: tlsFile("cert.pem"), key: tlsFile("key.pem") });
const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/** Accepts every client and answers no query. Returns its port and the number of open connections. */
async function startSilentServer(isTls: boolean) {
  const open = new Set<Socket>();
  const letIn = (socket: Socket) => {
    socket.on("error", () => {}).once("data", () => socket.write(Buffer.concat([AUTHENTICATED, READY])));
  };
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    if (!isTls) return letIn(socket);
    socket.once("data", () => {
      socket.write("S");
      letIn(new TLSSocket(socket, { isServer: true, secureContext: SECURE }));
    });
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, open };
}

test.each([
  ["clear text", false, "disable"],
  ["TLS", true, "no-verify"],
])("a connection over %s is dropped if its server answers no query", async (_, isTls, sslmode) => {
  const { port, open } = await startSilentServer(isTls);
  const servers = new Servers([`postgres://x@127.0.0.1:${port}/x?sslmode=${sslmode}`]);
  servers.started();
  await expect(servers.connect()).rejects.toMatchObject({ name: "store-unavailable" });
  await expect.poll(() => open.size).toBe(0);
});
