import { once } from "node:events";
import { readdirSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const DESCRIPTORS = 64;
const CONNECTIONS = 200;

test("F24: with no descriptors left it takes no connections, says so once, serves those it has, and recovers", async () => {
  await using gateway = await startProcess({
    config: agentWith({}),
    command: (usual) => ["bash", "-c", `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`, ...usual],
  });
  const rest = createRest(gateway.url, key);
  expect((await rest.call("chat.send", { body: { message: "before" } })).status).toBe(200);
  await using kept = await openConnection(gateway.url);
  const port = Number(new URL(gateway.url).port);
  const sockets: Socket[] = [];
  const gone = new Set<Socket>();
  for (let n = 0; n < CONNECTIONS; n++) {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.on("close", () => gone.add(socket));
    sockets.push(socket);
  }
  expect(await gateway.logged("accept.paused")).toMatchObject({ level: "error", reason: "connections" });
  await expect.poll(() => gone.size).toBeGreaterThan(CONNECTIONS - DESCRIPTORS);
  expect(readdirSync(`/proc/${gateway.pid}/fd`).length).toBeLessThan(DESCRIPTORS - 10);
  const place = { method: "POST", path: "/api/v1/chat/send" };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  kept.write(requestText(place, headers, '{"message":"meanwhile"}'));
  expect(await kept.reply(place)).toMatchObject({ status: 200, json: { reply: "meanwhile" } });

  const left = sockets.filter((socket) => !gone.has(socket));
  expect(left.length).toBeGreaterThan(5);
  await Promise.all(left.map((socket) => once(socket.destroy(), "close")));
  await expect.poll(() => readdirSync(`/proc/${gateway.pid}/fd`).length).toBeLessThan(30);
  expect((await rest.call("chat.send", { body: { message: "after" } })).status).toBe(200);
  await gateway.logged("accept.resumed");
  expect(gateway.records.filter(({ event }) => event === "accept.paused")).toHaveLength(1);
}, 30_000);

test("F24: two listeners share the descriptors: one that is full leaves the other its own", async () => {
  const usual = agentWith({});
  await using gateway = await startProcess({
    config: { ...usual, gateway: { ...usual.gateway, listeners: [{ port: 0 }, { port: 0 }] } },
    command: (usual) => ["bash", "-c", `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`, ...usual],
  });
  const [full, other] = await Promise.all([gateway.logged("listening", 1), gateway.logged("listening", 2)]);
  const port = Number(new URL(String(full.address)).port);
  const sockets = Array.from({ length: CONNECTIONS }, () => connect(port, "127.0.0.1").on("error", () => {}));
  await gateway.logged("accept.paused");
  const rest = createRest(String(other.address), key);
  expect((await rest.call("chat.send", { body: { message: "meanwhile" } })).status).toBe(200);
  await expect.poll(() => sockets.filter(({ closed }) => closed).length).toBeGreaterThan(CONNECTIONS - DESCRIPTORS / 2);
  for (const socket of sockets) socket.destroy();
}, 30_000);
