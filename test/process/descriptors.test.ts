import { connect } from "node:net";
import { expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const DESCRIPTORS = 64;
const CONNECTIONS = 200;

test("F24: two listeners share the descriptors: a full one leaves the other its share", async () => {
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
});
